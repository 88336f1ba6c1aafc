// The end of a peer: everything that needs it fails, everything else goes on.
#include "weft/net/protocol/messenger.hpp"

namespace weft::net {
namespace {

bool ended(PeerState state) noexcept { return state == PeerState::left || state == PeerState::lost; }

}  // namespace

void Messenger::say_goodbye(Errc code, std::int32_t at_fault) noexcept {
  WireHeader header;
  header.kind = PacketKind::goodbye;
  header.tag = static_cast<std::uint64_t>(code);
  header.aux = static_cast<std::uint32_t>(at_fault + 1);
  goodbye_ = header;
  for (std::int32_t rank = 0; rank < world_size(); ++rank) {
    if (rank != self_) send_control(rank, header);
  }
}

bool Messenger::any_connected() const noexcept {
  for (std::int32_t rank = 0; rank < world_size(); ++rank) {
    if (rank != self_ && peers_[index(rank)].state == PeerState::connected) return true;
  }
  return false;
}

void Messenger::on_goodbye(std::int32_t rank, const WireHeader& header) noexcept {
  const auto at_fault = static_cast<std::int32_t>(header.aux) - 1;
  if (at_fault >= 0 && at_fault < world_size() && at_fault != rank && at_fault != self_) {
    // The peer gave up because of another rank: that one is what a user must hear of.
    end_peer(rank, PeerState::left, Outcome{Errc::peer_lost, at_fault, 0},
             "it gave up because rank " + std::to_string(at_fault) + " is lost");
  } else if (header.tag == static_cast<std::uint64_t>(Errc::mismatch)) {
    // Ranks that disagree are all in the same trouble, also those that did not meet each other.
    end_peer(rank, PeerState::left, Outcome{Errc::mismatch, rank, 0},
             "it found that ranks do not call the same collectives in the same order");
  } else if (header.tag == 0) {
    end_peer(rank, PeerState::left, Outcome{Errc::peer_closed, rank, 0}, "it ended in order while it was still needed");
  } else {
    const auto code = static_cast<Errc>(header.tag);
    end_peer(rank, PeerState::left, Outcome{Errc::peer_lost, rank, 0},
             "it gave up with an error of its own: " + std::string(to_string(code)));
  }
}

void Messenger::on_peer_lost(std::int32_t rank, Outcome outcome, std::string_view cause) noexcept {
  // After a goodbye this is no news, but what the transport still held has come back by now.
  if (ended(peers_[index(rank)].state)) return fail_transfers(rank, peers_[index(rank)].end);
  // Whatever the connection saw, for those who need the peer it is lost.
  end_peer(rank, PeerState::lost, Outcome{Errc::peer_lost, rank, outcome.native}, cause);
  fail_transfers(rank, peers_[index(rank)].end);
}

void Messenger::peer_ended(std::int32_t rank, PeerState how, Outcome outcome, std::string_view cause) noexcept {
  Peer& peer = peers_[index(rank)];
  if (ended(peer.state)) return;
  if (peer.transport != nullptr) peer.transport->disconnect(rank);
  end_peer(rank, how, outcome, cause);
  fail_transfers(rank, outcome);
}

void Messenger::end_peer(std::int32_t rank, PeerState how, Outcome outcome, std::string_view cause) noexcept {
  Peer& peer = peers_[index(rank)];
  if (ended(peer.state)) return;  // the first report counts
  peer.state = how;
  peer.end = outcome;
  peer.cause = cause;
  peer.control.clear();
  peer.control_sent = 0;
  fail_offered(rank, outcome);
  fail_waiting(rank, outcome);
  connector_.on_peer_ended(rank);
  fail_orphaned_wildcards();
}

void Messenger::fail_waiting(std::int32_t rank, Outcome outcome) noexcept {
  while (SendRequest* request = peers_[index(rank)].queue.pop_front()) finish(*request, outcome);
  matcher_.fail_source(rank, [outcome](PostedReceive& receive) { finish_receive(receive, outcome); });
}

void Messenger::fail_offered(std::int32_t rank, Outcome outcome) noexcept {
  // Nobody will ever take these. A transfer that runs is left to its transport, which may have moved all of it.
  sends_.for_each([&](SendRequest& request) {
    if (request.peer != rank || request.state == SendRequest::State::streaming) return;
    // One that was being taken back ends as whoever took it back wanted.
    const bool withdrawn = request.state == SendRequest::State::withdrawing;
    sends_.remove(request.slot);
    finish(request, withdrawn ? request.withdraw_outcome : outcome);
  });
}

void Messenger::fail_transfers(std::int32_t rank, Outcome outcome) noexcept {
  // A peer that has ended reads and writes nothing any more, and its transport has let go of every request.
  sends_.for_each([&](SendRequest& request) {
    if (request.peer != rank) return;
    sends_.remove(request.slot);
    finish(request, outcome);
  });
  receives_.for_each([&](RecvRequest& request) {
    if (request.source != rank) return;
    receives_.remove(request.slot);
    finish(request, outcome);
  });
  reads_.for_each([&](RecvRequest& request) {
    if (request.source != rank) return;
    reads_.remove(request.slot);
    finish(request, outcome);
  });
}

void Messenger::fail_context(std::uint32_t context, Outcome outcome) noexcept {
  matcher_.fail_context(context, [outcome](PostedReceive& receive) { finish_receive(receive, outcome); });
  for (Peer& peer : peers_) {
    for (SendRequest* request = peer.queue.first(); request != nullptr;) {
      SendRequest* const next = peer.queue.next(*request);
      if (request->context == context) cancel_send(*request, outcome);
      request = next;
    }
  }
  sends_.for_each([&](SendRequest& request) {
    if (request.context == context) cancel_send(request, outcome);
  });
}

void Messenger::drop_context(std::uint32_t context, Outcome why) noexcept {
  matcher_.drop_context(context, [this, why](const UnexpectedMessage& message) noexcept {
    if (message.header().kind != PacketKind::rts) {
      give_window_back(message.source(), message.header().length);
      return;
    }
    WireHeader fin;
    fin.kind = PacketKind::fin;
    fin.aux = message.header().aux;
    fin.tag = fin_verdict(why.ok() ? Outcome{Errc::closed, kNoRank, 0} : why);
    send_control(message.source(), fin);
  });
}

std::string Messenger::describe_end(std::int32_t rank) const {
  const Peer& peer = peers_[index(rank)];
  if (peer.state == PeerState::lost) return "is lost: " + peer.cause;
  if (peer.state == PeerState::left) return "has left: " + peer.cause;
  for (std::int32_t other = 0; other < world_size(); ++other) {
    if (ended(peers_[index(other)].state) && peers_[index(other)].end.peer == rank) {
      return "is lost, says rank " + std::to_string(other) + ", which gave up because of it";
    }
  }
  return "no longer takes part, says another rank";
}

void Messenger::fail_orphaned_wildcards() noexcept {
  if (world_size() < 2) return;
  const Peer* last = nullptr;
  for (std::int32_t rank = 0; rank < world_size(); ++rank) {
    if (rank == self_) continue;
    if (!ended(peers_[index(rank)].state)) return;
    last = &peers_[index(rank)];
  }
  // Nobody is left who could send: a receive from any rank would wait for ever.
  matcher_.fail_source(kAnySource, [last](PostedReceive& receive) { finish_receive(receive, last->end); });
}

}  // namespace weft::net
