#include "weft/net/communicator.hpp"

#include <algorithm>
#include <vector>

#include "weft/net/collective_channel.hpp"
#include "weft/net/fabric.hpp"

namespace weft {
namespace {

/// What every rank says in a split. Fixed width: it travels.
struct SplitEntry {
  std::int32_t color;
  std::int32_t key;
  std::uint32_t next_context;
  std::int32_t rank;
};

constexpr std::uint32_t kSplitSignature = 0x5b117u;

std::string describe_split(std::uint32_t signature) {
  return signature == kSplitSignature ? "split or dup" : "another collective";
}

/// Every rank learns every entry: rank 0 gathers and hands out. Linear in ranks, once in a communicator's life.
Task<std::vector<SplitEntry>> exchange_entries(Communicator& parent, SplitEntry mine) {
  net::CollectiveChannel channel(parent, "split", kSplitSignature, &describe_split);
  std::vector<SplitEntry> entries(static_cast<std::size_t>(parent.size()));
  entries[static_cast<std::size_t>(parent.rank())] = mine;
  if (parent.rank() != 0) {
    co_await channel.send(0, 0, std::as_bytes(std::span(&mine, 1)));
    co_await channel.recv(0, 1, std::as_writable_bytes(std::span(entries)));
    co_return entries;
  }
  for (Rank from = 1; from < parent.size(); ++from) {
    const std::span<SplitEntry> place = std::span(entries).subspan(static_cast<std::size_t>(from), 1);
    co_await channel.recv(from, 0, std::as_writable_bytes(place));
  }
  for (Rank to = 1; to < parent.size(); ++to) {
    co_await channel.send(to, 1, std::as_bytes(std::span(entries)));
  }
  co_return entries;
}

}  // namespace

Task<Communicator> Communicator::split(std::int32_t color, std::int32_t key) {
  if (color < 0) {
    throw Error(Errc::invalid_argument, "split", "color is " + std::to_string(color) + "; it must be 0 or more");
  }
  net::Fabric& fabric = group_->fabric();
  const SplitEntry mine{color, key, fabric.next_context(), rank()};
  std::vector<SplitEntry> entries = co_await exchange_entries(*this, mine);

  // The largest proposal is free on all ranks. All colors share it: their members are disjoint.
  std::uint32_t context = 0;
  for (const SplitEntry& entry : entries) context = std::max(context, entry.next_context);
  fabric.take_context(context);

  std::erase_if(entries, [color](const SplitEntry& entry) { return entry.color != color; });
  std::sort(entries.begin(), entries.end(), [](const SplitEntry& a, const SplitEntry& b) {
    return a.key != b.key ? a.key < b.key : a.rank < b.rank;
  });
  std::vector<std::int32_t> members;
  members.reserve(entries.size());
  for (const SplitEntry& entry : entries) members.push_back(group_->world_rank(entry.rank));

  const std::string child_name = name() + "/" + std::to_string(color);
  auto child = std::make_unique<net::Group>(fabric, group_->messenger(), child_name, context, std::move(members));
  child->set_default_timeout(default_timeout());
  child->set_order(order());
  co_return Communicator(std::move(child));
}

Task<Communicator> Communicator::dup() { return split(0, 0); }

}  // namespace weft
