#include "weft/net/group.hpp"

#include <algorithm>
#include <utility>

#include "weft/net/collective_channel.hpp"
#include "weft/net/fabric.hpp"

namespace weft::net {

Group::Group(Fabric& fabric, Messenger& messenger, std::string name, std::uint32_t context,
             std::vector<std::int32_t> members)
    : fabric_(fabric),
      messenger_(messenger),
      name_(std::move(name)),
      context_(context),
      members_(std::move(members)),
      rank_(rank_of(messenger.self())) {
  early_.reserve(kEarlySignatures);
  fabric_.add_group(*this);
  // Members that were faster may have called a collective before there was a group here to be told of it.
  messenger_.matcher().for_each_unexpected(collective_context(), [this](const UnexpectedMessage& message) noexcept {
    if (rank_of(message.source()) == kNoRank) return;
    on_early_collective(message.source(), collective_sequence(message.header().tag), note_of(message));
  });
}

Group::~Group() {
  unlink();
  messenger_.drop_context(context(), broken_);
  messenger_.drop_context(collective_context(), broken_);
}

Rank Group::rank_of(std::int32_t world_rank) const noexcept {
  const auto found = std::find(members_.begin(), members_.end(), world_rank);
  return found == members_.end() ? kNoRank : static_cast<Rank>(found - members_.begin());
}

void Group::break_collectives(Outcome outcome, std::string cause) noexcept {
  if (!broken_.ok()) return;
  broken_ = outcome;
  broken_cause_ = std::move(cause);
  messenger_.fail_context(collective_context(), outcome);
}

void Group::begin(ActiveCollective& collective) noexcept {
  active_.push_back(collective);
  if (early_.empty()) return;
  for (const EarlySignature& early : early_) {
    if (early.sequence == collective.sequence && early.signature != collective.signature) {
      mismatch(early.source, early.sequence, early.signature, collective.signature);
      break;
    }
  }
  std::erase_if(early_, [&](const EarlySignature& early) { return early.sequence <= collective.sequence; });
}

void Group::end(ActiveCollective& collective) noexcept { collective.unlink(); }

void Group::on_member_ended(std::int32_t world_rank) noexcept {
  if (rank_of(world_rank) == kNoRank) return;
  // Who has left in order has done his part of every collective so far; whoever needs him for another one finds out.
  if (messenger_.peer(world_rank).end.code == Errc::peer_closed) return;
  const Outcome& end = messenger_.peer(world_rank).end;
  break_collectives(end, "rank " + std::to_string(end.peer) + " " + messenger_.describe_end(end.peer));
}

void Group::on_early_collective(std::int32_t world_rank, std::uint64_t sequence, std::uint32_t signature) noexcept {
  const Rank source = rank_of(world_rank);
  for (ActiveCollective* active = active_.first(); active != nullptr; active = active_.next(*active)) {
    if (active->sequence != sequence) continue;
    if (active->signature != signature) mismatch(source, sequence, signature, active->signature);
    return;
  }
  if (sequence <= sequence_) return;  // of a collective that has ended here, with an error
  for (const EarlySignature& early : early_) {
    if (early.sequence == sequence && early.source == source) return;
  }
  early_.push_back(EarlySignature{sequence, signature, source});
}

void Group::mismatch(Rank other, std::uint64_t sequence, std::uint32_t theirs, std::uint32_t ours) noexcept {
  break_collectives(Outcome{Errc::mismatch, other == kNoRank ? kNoRank : world_rank(other), 0},
                    describe_mismatch(other, sequence, theirs, ours));
}

std::string Group::describe_mismatch(Rank other, std::uint64_t sequence, std::uint32_t theirs,
                                     std::uint32_t ours) const {
  const auto words = [this](std::uint32_t signature) {
    return describe_ != nullptr ? describe_(signature) : "signature " + std::to_string(signature);
  };
  return "ranks disagree about collective " + std::to_string(sequence) + " of '" + name_ + "': rank " +
         std::to_string(other) + " called " + words(theirs) + ", rank " + std::to_string(rank_) + " called " +
         words(ours) + "; all ranks must call the same collectives in the same order";
}

}  // namespace weft::net
