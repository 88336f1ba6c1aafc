// How the news of a rank's end reaches operations. Whoever is connected to it hears it from the connection, after the
// last message; everybody else from the store.
#include "weft/net/collective_channel.hpp"
#include "weft/net/fabric.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {
namespace {

// What a connection gets to report by itself the end that the store has reported, with all that was sent before it.
// The end of a process reaches all its sockets at once; a busy host may take some turns to look.
constexpr Duration kOwnNewsGrace = std::chrono::milliseconds(300);

}  // namespace

void Fabric::on_peer_ended(std::int32_t peer) noexcept {
  for (Group* group = groups_.first(); group != nullptr; group = groups_.next(*group)) group->on_member_ended(peer);
}

void Fabric::on_early_collective(std::int32_t peer, const WireHeader& header, std::uint32_t note) noexcept {
  for (Group* group = groups_.first(); group != nullptr; group = groups_.next(*group)) {
    if (group->collective_context() != header.context || group->rank_of(peer) == kNoRank) continue;
    group->on_early_collective(peer, collective_sequence(header.tag), note);
    return;
  }
}

void Fabric::on_rank_lost(std::int32_t rank, std::int32_t at_fault, std::string_view cause) noexcept {
  end_soon(rank, PeerState::lost, Outcome{Errc::peer_lost, at_fault, 0}, std::string(cause));
}

void Fabric::on_rank_left(std::int32_t rank, std::int32_t code, std::int32_t at_fault) noexcept {
  if (code == 0) {
    end_soon(rank, PeerState::left, Outcome{Errc::peer_closed, rank, 0}, "it ended in order while it was still needed");
  } else if (at_fault >= 0 && at_fault != rank) {
    end_soon(rank, PeerState::left, Outcome{Errc::peer_lost, at_fault, 0},
             "it gave up because rank " + std::to_string(at_fault) + " is lost");
  } else {
    end_soon(rank, PeerState::left, Outcome{Errc::peer_lost, rank, 0}, "it gave up with an error of its own");
  }
}

void Fabric::on_store_lost(std::string_view cause) noexcept {
  if (rank_ != 0) end_soon(0, PeerState::lost, Outcome{Errc::peer_lost, 0, 0}, std::string(cause));
}

void Fabric::end_soon(std::int32_t rank, PeerState how, Outcome outcome, std::string cause) noexcept {
  if (rank == rank_) return;
  if (messenger_.peer_state(rank) == PeerState::connected && nursery_ != nullptr && !leaving_) {
    nursery_->start(end_later(rank, how, outcome, std::move(cause)));
  } else {
    messenger_.peer_ended(rank, how, outcome, cause);
  }
}

Task<void> Fabric::end_later(std::int32_t rank, PeerState how, Outcome outcome, std::string cause) {
  co_await sleep_for(kOwnNewsGrace);
  messenger_.peer_ended(rank, how, outcome, cause);
}

}  // namespace weft::net
