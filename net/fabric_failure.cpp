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

// What a receiver gets to say whether it lets go of a send that was cancelled. Until then the buffer may be read, so
// the sender cannot go on. Ten times what a turn of a busy host takes, and within the 2 s of a silent peer.
constexpr Duration kWithdrawalGrace = std::chrono::seconds(1);

}  // namespace

void Fabric::on_withdrawing(std::int32_t peer, std::uint32_t slot) noexcept {
  if (nursery_ != nullptr) nursery_->start(await_withdrawal(peer, slot));
}

Task<void> Fabric::await_withdrawal(std::int32_t peer, std::uint32_t slot) {
  co_await sleep_for(kWithdrawalGrace);
  if (!messenger_.still_withdrawing(slot)) co_return;
  // Closing the connection keeps a peer that wakes up later from reading a buffer that is no longer ours to lend.
  messenger_.peer_ended(peer, PeerState::lost, Outcome{Errc::peer_lost, peer, 0},
                        "it has not answered for 1 s whether it lets go of a send that was cancelled");
}

void Fabric::on_peer_ended(std::int32_t peer) noexcept {
  peer_ended_.set();
  // Who has said goodbye has sent his part of every collective he came to, and the others may be about to finish one.
  // Those who still need him fail by that; the rest hear of it a little later.
  if (messenger_.peer_state(peer) == PeerState::left && nursery_ != nullptr && !leaving_) {
    nursery_->start(break_groups_later(peer));
  } else {
    break_groups(peer);
  }
}

void Fabric::break_groups(std::int32_t peer) noexcept {
  for (Group* group = groups_.first(); group != nullptr; group = groups_.next(*group)) group->on_member_ended(peer);
}

Task<void> Fabric::break_groups_later(std::int32_t peer) {
  co_await sleep_for(kOwnNewsGrace);
  break_groups(peer);
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
    // A connection says so itself, behind the last message.
    if (messenger_.peer_state(rank) == PeerState::connected) return;
    end_soon(rank, PeerState::left, Outcome{Errc::peer_closed, rank, 0}, "it ended in order while it was still needed");
  } else if (code == static_cast<std::int32_t>(Errc::mismatch)) {
    end_soon(rank, PeerState::left, Outcome{Errc::mismatch, rank, 0},
             "it found that ranks do not call the same collectives in the same order");
  } else if (at_fault >= 0 && at_fault != rank && at_fault != rank_) {
    end_soon(rank, PeerState::left, Outcome{Errc::peer_lost, at_fault, 0},
             "it gave up because rank " + std::to_string(at_fault) + " is lost");
  } else {
    end_soon(rank, PeerState::left, Outcome{Errc::peer_lost, rank, 0}, "it gave up with an error of its own");
  }
}

void Fabric::on_store_lost(std::string_view cause) noexcept {
  if (rank_ == 0) return;
  end_soon(0, PeerState::lost, Outcome{Errc::peer_lost, 0, 0}, std::string(cause));
  // Without the store no connection can be made any more, and nobody tells of the end of those who have none: whoever
  // still needs one of them would wait for ever. What ended rank 0 is what they are told.
  const PeerState zero = messenger_.peer_state(0);
  const bool known = zero == PeerState::left || zero == PeerState::lost;
  const Outcome outcome = known ? messenger_.peer(0).end : Outcome{Errc::peer_lost, 0, 0};
  for (std::int32_t rank = 1; rank < messenger_.world_size(); ++rank) {
    if (rank == rank_ || messenger_.peer_state(rank) == PeerState::connected) continue;
    messenger_.peer_ended(rank, PeerState::lost, outcome,
                          "it cannot be reached: rank 0, which keeps the store, is gone");
  }
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
