#include "weft/net/operation.hpp"

#include <string>

namespace weft::net {
namespace {

std::int32_t checked_world_rank(const Group& group, OperationName name, Rank rank) {
  check_rank(group, name.name, rank, false);
  return group.world_rank(rank);
}

MatchPattern pattern_for(const Group& group, OperationName name, Rank from, std::uint32_t context, TagPattern tag) {
  const std::int32_t source = from == any_rank ? kAnySource : checked_world_rank(group, name, from);
  return MatchPattern{context, source, tag.tag & tag.mask, tag.mask};
}

std::string full_name(OperationName name) {
  std::string text = name.name;
  if (name.number != 0) text.append("#").append(std::to_string(name.number));
  return text;
}

std::string tag_text(Tag tag, Tag mask) {
  if (mask == 0) return "any tag";
  std::string text = "tag " + std::to_string(tag);
  if (mask != kWholeTag) text.append(" under mask ").append(std::to_string(mask));
  return text;
}

/// "rank 1 of 'half'", with the world's number where it differs.
std::string rank_text(const Group& group, std::int32_t world_rank) {
  const Rank rank = group.rank_of(world_rank);
  if (rank == kNoRank) return "rank " + std::to_string(world_rank) + " of the world";
  std::string text = "rank " + std::to_string(rank);
  if (rank != world_rank) {
    text.append(" of '").append(group.name()).append("' (rank ").append(std::to_string(world_rank));
    text.append(" of the world)");
  }
  return text;
}

}  // namespace

void check_rank(const Group& group, const char* operation, Rank rank, bool any) {
  if (group.has(rank) || (any && rank == any_rank)) return;
  throw Error(Errc::invalid_argument, operation,
              "rank " + std::to_string(rank) + " is not in '" + group.name() + "', which has ranks 0 to " +
                  std::to_string(group.size() - 1));
}

void Operation::arm_timeout(Reactor& reactor) noexcept {
  reactor_ = &reactor;
  reactor.timers().arm(*this, saturating_add(reactor.clock().now(), group_.default_timeout()));
}

void Operation::disarm_timeout() noexcept {
  if (reactor_ == nullptr) return;
  reactor_->timers().cancel(*this);
  reactor_ = nullptr;
}

void Operation::fail(Outcome outcome, const std::string& action) const {
  std::string reason = action;
  switch (outcome.code) {
    case Errc::peer_lost:
    case Errc::peer_closed: {
      reason =
          rank_text(group_, outcome.peer) + " " + group_.messenger().describe_end(outcome.peer) + ", while " + action;
      break;
    }
    case Errc::mismatch:
      reason = !group_.broken_cause().empty()
                   ? group_.broken_cause()
                   : rank_text(group_, outcome.peer) + " " + group_.messenger().describe_end(outcome.peer);
      break;
    case Errc::timed_out: reason = "timed out while " + action; break;
    case Errc::cancelled: reason = "cancelled while " + action; break;
    default: reason = std::string(to_string(outcome.code)) + " while " + action; break;
  }
  throw Error(outcome.code, full_name(name_), reason, outcome.peer, outcome.native);
}

void Operation::fail_refused() const {
  const Outcome& broken = group_.broken();
  if (name_.number != 0 && !broken.ok()) {
    throw Error(broken.code, full_name(name_), group_.broken_cause(), broken.peer, broken.native);
  }
  throw Error(refused_, full_name(name_), std::string(to_string(refused_)) + " before it started");
}

void Operation::fail_send(const SendRequest& request) const {
  std::string action = "sending " + std::to_string(request.payload.size()) + " bytes to " +
                       rank_text(group_, request.peer);
  if (name_.number == 0) action.append(", ").append(tag_text(request.tag, kWholeTag));
  if (request.slot != 0) action.append(" (offered by rendezvous, no receive has taken it)");
  Outcome outcome = request.outcome;
  if (outcome.peer == kNoRank && outcome.code != Errc::cancelled) outcome.peer = request.peer;
  fail(outcome, action);
}

void Operation::fail_recv(const RecvRequest& request) const {
  if (request.source != kNoRank && disagrees(request)) {
    throw Error(Errc::mismatch, full_name(name_),
                group_.describe_mismatch(group_.rank_of(request.source), name_.number, request.note, name_.signature),
                request.source);
  }
  Outcome outcome = request.outcome;
  const MatchPattern& wanted = request.pattern();
  const std::string whom = wanted.source == kAnySource ? "any rank" : rank_text(group_, wanted.source);
  if (outcome.code == Errc::truncated) {
    throw Error(Errc::truncated, full_name(name_),
                "the message from " + rank_text(group_, request.source) + ", tag " + std::to_string(request.tag) +
                    ", has " + std::to_string(request.length) + " bytes, the buffer " +
                    std::to_string(request.buffer.size()) + "; receive it with a larger buffer",
                request.source);
  }
  std::string action = "waiting for a message from " + whom;
  if (name_.number == 0) action.append(", ").append(tag_text(wanted.tag, wanted.mask));
  if (outcome.peer == kNoRank && outcome.code == Errc::timed_out && wanted.source != kAnySource) {
    outcome.peer = wanted.source;
  }
  fail(outcome, action);
}

SendOperation::SendOperation(Group& group, OperationName name, Rank to, std::uint32_t context, Tag tag,
                             std::span<const std::byte> bytes)
    : Operation(group, name), request_(*this, checked_world_rank(group, name, to), context, tag, bytes) {
  request_.note = name.signature;
}

void SendOperation::cancel_requests(Errc reason) noexcept {
  group_.messenger().cancel_send(request_, Outcome{reason, kNoRank, 0});
}

RecvOperation::RecvOperation(Group& group, OperationName name, Rank from, std::uint32_t context, TagPattern tag,
                             std::span<std::byte> bytes)
    : Operation(group, name), request_(*this, pattern_for(group, name, from, context, tag), bytes) {}

void RecvOperation::cancel_requests(Errc reason) noexcept {
  group_.messenger().cancel_recv(request_, Outcome{reason, kNoRank, 0});
}

SendRecvOperation::SendRecvOperation(Group& group, OperationName name, std::uint32_t context, Rank to, Tag send_tag,
                                     std::span<const std::byte> out, Rank from, TagPattern recv_tag,
                                     std::span<std::byte> in)
    : Operation(group, name),
      send_(*this, checked_world_rank(group, name, to), context, send_tag, out),
      recv_(*this, pattern_for(group, name, from, context, recv_tag), in) {
  send_.note = name.signature;
}

void SendRecvOperation::one_done() noexcept {
  if (!both_started_) return;
  const bool send_done = send_.state == SendRequest::State::done;
  const Outcome outcome = send_done ? send_.outcome : recv_.outcome;
  const bool failed = !outcome.ok() || (!send_done && disagrees(recv_));
  if (failed) cancel_requests(Errc::cancelled);
}

void SendRecvOperation::cancel_requests(Errc reason) noexcept {
  // Each of the two may complete the other's owner: look again before the second.
  if (recv_.state == RecvRequest::State::posted) group_.messenger().cancel_recv(recv_, Outcome{reason, kNoRank, 0});
  if (send_.state != SendRequest::State::done) group_.messenger().cancel_send(send_, Outcome{reason, kNoRank, 0});
}

void SendRecvOperation::fail_either() const {
  // The one that failed by itself, not the one that was cancelled because of it.
  const bool recv_failed = !recv_.outcome.ok() || disagrees(recv_);
  const bool send_failed = !send_.outcome.ok();
  if (recv_failed && !(recv_.outcome.code == Errc::cancelled && send_failed)) fail_recv(recv_);
  fail_send(send_);
}

}  // namespace weft::net
