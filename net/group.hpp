// What a communicator is made of, below its public face: who is in it, and what its operations need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/net/message.hpp"
#include "weft/net/protocol/messenger.hpp"
#include "weft/runtime/clock.hpp"
#include "weft/runtime/error.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft::net {

class Fabric;

/// In which order the ranks' contributions to a reduction are combined.
enum class Order : std::uint8_t {
  consistent,  ///< whatever is fastest; the same bits on all ranks and in every run of one configuration
  canonical,   ///< left to right over ranks 0..p-1, whatever the transport, algorithm or bucket
};

/// A collective that runs now. Lives in the frame of the collective's coroutine.
struct ActiveCollective : ListHook<> {
  std::uint64_t sequence = 0;
  std::uint32_t signature = 0;
};

/// A message of a collective that has not been called here yet.
struct EarlySignature {
  std::uint64_t sequence;
  std::uint32_t signature;
  Rank source;
};

/// See the top of the file. Pinned: operations and the fabric hold its address. Thread: the rank's reactor.
class Group : public ListHook<Group> {
 public:
  Group(Fabric& fabric, Messenger& messenger, std::string name, std::uint32_t context,
        std::vector<std::int32_t> members);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  [[nodiscard]] Fabric& fabric() const noexcept { return fabric_; }
  [[nodiscard]] Messenger& messenger() const noexcept { return messenger_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] Rank rank() const noexcept { return rank_; }
  [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(members_.size()); }
  [[nodiscard]] std::uint32_t context() const noexcept { return context_; }
  [[nodiscard]] std::uint32_t collective_context() const noexcept { return context_ + 1; }

  [[nodiscard]] bool has(Rank rank) const noexcept { return rank >= 0 && rank < size(); }
  [[nodiscard]] std::int32_t world_rank(Rank rank) const noexcept { return members_[static_cast<std::size_t>(rank)]; }
  /// kNoRank for a rank of the world that is not a member.
  [[nodiscard]] Rank rank_of(std::int32_t world_rank) const noexcept;
  [[nodiscard]] const std::vector<std::int32_t>& members() const noexcept { return members_; }

  /// Limit of every operation that has no deadline of its own; zero: none.
  [[nodiscard]] Duration default_timeout() const noexcept { return default_timeout_; }
  void set_default_timeout(Duration timeout) noexcept { default_timeout_ = timeout; }
  [[nodiscard]] Order order() const noexcept { return order_; }
  void set_order(Order order) noexcept { order_ = order; }

  // Collectives. ----------------------------------------------------------------------------------------------------

  /// Number of the next collective on this communicator: the same on all ranks, because they call in the same order.
  [[nodiscard]] std::uint64_t next_sequence() noexcept { return ++sequence_; }
  /// Why no collective can work here any more: a member has ended, or ranks disagreed. Ok while all is well.
  [[nodiscard]] const Outcome& broken() const noexcept { return broken_; }
  [[nodiscard]] const std::string& broken_cause() const noexcept { return broken_cause_; }
  void break_collectives(Outcome outcome, std::string cause) noexcept;

  /// Lists a collective; it is told of a message that disagrees with it. False when one has come already.
  void begin(ActiveCollective& collective) noexcept;
  void end(ActiveCollective& collective) noexcept;

  // News from the fabric. -------------------------------------------------------------------------------------------

  void on_member_ended(std::int32_t world_rank) noexcept;
  void on_early_collective(std::int32_t world_rank, std::uint64_t sequence, std::uint32_t signature) noexcept;

  /// Turns a signature into words; set by the layer that makes signatures.
  using DescribeSignature = std::string (*)(std::uint32_t signature);
  void set_describe(DescribeSignature describe) noexcept { describe_ = describe; }

  /// "rank 2 of world called all_reduce of 3 x f32 (sum) as collective 7, this rank ..."
  [[nodiscard]] std::string describe_mismatch(Rank other, std::uint64_t sequence, std::uint32_t theirs,
                                              std::uint32_t ours) const;

 private:
  /// Room that is there from the start: a rank that comes late finds a message of most others, and no collective may
  /// allocate because of that. Larger groups grow to what they need.
  static constexpr std::size_t kEarlySignatures = 64;

  void mismatch(Rank other, std::uint64_t sequence, std::uint32_t theirs, std::uint32_t ours) noexcept;

  Fabric& fabric_;
  Messenger& messenger_;
  std::string name_;
  std::uint32_t context_;
  std::vector<std::int32_t> members_;  ///< world ranks, by rank
  Rank rank_ = kNoRank;
  Duration default_timeout_{};
  Order order_ = Order::consistent;
  std::uint64_t sequence_ = 0;
  Outcome broken_;
  std::string broken_cause_;
  IntrusiveList<ActiveCollective> active_;
  std::vector<EarlySignature> early_;
  DescribeSignature describe_ = nullptr;
};

}  // namespace weft::net
