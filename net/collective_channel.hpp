// The messages of one collective call: numbered, signed, and apart from the users' own.
//
// Every rank counts the collectives of a communicator; the count and the step within the collective are the tag. The
// signature (what was called, on how much of what) travels beside the tag, so that ranks that disagree find out at the
// first message between them: Errc::mismatch, naming both sides.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "weft/net/communicator.hpp"

namespace weft::net {

/// See the top of the file. Lives in the collective's coroutine, from its first message to its last. Pinned.
class CollectiveChannel {
 public:
  /// `name` is a literal ("all_reduce"), `describe` words a signature for the message of a mismatch.
  /// Errors: throws Error(peer_lost | peer_closed | mismatch) when the communicator can no longer do collectives.
  CollectiveChannel(Communicator& communicator, const char* name, std::uint32_t signature,
                    Group::DescribeSignature describe);
  CollectiveChannel(const CollectiveChannel&) = delete;
  CollectiveChannel& operator=(const CollectiveChannel&) = delete;
  ~CollectiveChannel();

  [[nodiscard]] Rank rank() const noexcept { return group_.rank(); }
  [[nodiscard]] Rank size() const noexcept { return group_.size(); }
  /// "all_reduce#41": what the user sees.
  [[nodiscard]] OperationName name() const noexcept { return name_; }

  /// Steps are numbered by the algorithm, below 2^20, the same on both sides.
  [[nodiscard]] SendOperation send(Rank to, std::uint32_t step, std::span<const std::byte> bytes) {
    return {group_, name_, to, group_.collective_context(), tag(step), bytes};
  }
  [[nodiscard]] RecvOperation recv(Rank from, std::uint32_t step, std::span<std::byte> bytes) {
    return {group_, name_, from, group_.collective_context(), tag(step), bytes};
  }
  [[nodiscard]] SendRecvOperation exchange(Rank to, std::span<const std::byte> out, Rank from, std::span<std::byte> in,
                                           std::uint32_t step) {
    return {group_, name_, group_.collective_context(), to, tag(step), out, from, tag(step), in};
  }

 private:
  static constexpr unsigned kStepBits = 20;
  [[nodiscard]] Tag tag(std::uint32_t step) const noexcept { return active_.sequence << kStepBits | step; }

  Group& group_;
  ActiveCollective active_;
  OperationName name_;
};

/// The collective's number, as it stands in a tag.
[[nodiscard]] constexpr std::uint64_t collective_sequence(Tag tag) noexcept { return tag >> 20; }

}  // namespace weft::net
