#include "weft/net/bootstrap/store_core.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "weft/runtime/assert.hpp"

namespace weft::net::store {
namespace {

constexpr std::size_t kCounterBytes = 8;

[[nodiscard]] std::vector<std::byte> counter_value(std::int64_t count) {
  std::vector<std::byte> bytes(kCounterBytes);
  const auto bits = static_cast<std::uint64_t>(count);
  for (std::size_t i = 0; i < kCounterBytes; ++i)
    bytes[i] = static_cast<std::byte>((bits >> (8 * i)) & 0xff);
  return bytes;
}

[[nodiscard]] std::uint64_t counter_bits(const std::vector<std::byte>& bytes) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kCounterBytes; ++i)
    bits |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return bits;
}

[[nodiscard]] std::string rank_text(std::int32_t rank) {
  return "rank " + std::to_string(rank);
}

}  // namespace

StoreCore::StoreCore(std::int32_t world_size, StoreOutput& output)
    : output_(output), members_(static_cast<std::size_t>(world_size)) {
  WEFT_ASSERT(world_size > 0, "store: a world has at least one rank");
}

std::optional<Refusal> StoreCore::check_join(const Join& join, std::string_view address) const {
  Refusal refusal;
  refusal.fails_job = !complete();
  const std::string who = rank_text(join.rank) + " at " + std::string(address);
  if (failure_.has_value()) {
    refusal.code = failure_->first;
    refusal.text = failure_->second;
    return refusal;
  }
  const auto size = static_cast<std::int32_t>(members_.size());
  if (join.world_size != size) {
    refusal.text = who + " was started with WORLD_SIZE=" + std::to_string(join.world_size) +
                   ", rank 0 with WORLD_SIZE=" + std::to_string(size);
    return refusal;
  }
  if (join.rank < 0 || join.rank >= size) {
    refusal.text = who + " is outside of the world, whose ranks are 0 to " + std::to_string(size - 1);
    return refusal;
  }
  const Member& member = members_[static_cast<std::size_t>(join.rank)];
  switch (member.state) {
    case State::absent: return std::nullopt;
    case State::present:
      refusal.text = rank_text(join.rank) + " exists twice: at " + member.address + " and at " + std::string(address);
      break;
    case State::left: refusal.text = who + " comes back after it has left the job"; break;
    case State::lost: refusal.text = who + " comes back after the job has lost it: " + member.cause; break;
  }
  // Only two processes that are there at the same time show that the ranks were handed out wrongly.
  refusal.fails_job = refusal.fails_job && member.state == State::present;
  return refusal;
}

void StoreCore::join(std::int32_t rank, std::string_view address) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  WEFT_ASSERT(member.state == State::absent, "store: a rank joined twice");
  member.state = State::present;
  member.address = address;
  ++joined_;
  send(rank, Welcome());
  for (const std::int32_t other : gone_)
    send(rank, loss_frame(other));
  for (const std::int32_t from : std::exchange(member.connect_from, {}))
    send(rank, ConnectRequest{from});
}

bool StoreCore::handle(std::int32_t rank, const Frame& frame) {
  if (members_[static_cast<std::size_t>(rank)].state != State::present) return false;
  return std::visit([this, rank](const auto& body) { return on(rank, body); }, frame);
}

void StoreCore::gone(std::int32_t rank, std::string_view cause) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (member.state != State::present) return;
  member.state = State::lost;
  member.cause = cause;
  gone_.push_back(rank);
  drop_requests(rank);
  broadcast(loss_frame(rank), rank);
  fail_barriers_without(rank);
}

void StoreCore::fail_job(Errc code, std::string_view text) {
  if (failure_.has_value()) return;
  failure_.emplace(code, text);
  waits_.clear();
  waits_of_key_.clear();
  barriers_.clear();
  barrier_of_.clear();
  JobFailed frame;
  frame.code = code;
  frame.text = text;
  broadcast(frame, kNoRank);
}

std::vector<std::int32_t> StoreCore::absent() const {
  std::vector<std::int32_t> ranks;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].state == State::absent) ranks.push_back(static_cast<std::int32_t>(i));
  }
  return ranks;
}

bool StoreCore::on(std::int32_t rank, const Set& frame) {
  put(std::string(frame.key), std::vector<std::byte>(frame.value.begin(), frame.value.end()));
  send(rank, Done{frame.id});
  return true;
}

bool StoreCore::on(std::int32_t rank, const Get& frame) {
  std::vector<std::string> keys(1, std::string(frame.key));
  return await_keys({rank, frame.id}, std::move(keys), true);
}

bool StoreCore::on(std::int32_t rank, const WaitAll& frame) {
  std::vector<std::string> keys(frame.keys.begin(), frame.keys.end());
  return await_keys({rank, frame.id}, std::move(keys), false);
}

bool StoreCore::on(std::int32_t rank, const Add& frame) {
  std::string key(frame.key);
  std::uint64_t bits = 0;
  if (const auto found = values_.find(key); found != values_.end()) {
    if (found->second->size() != kCounterBytes) {
      Failed failed;
      failed.id = frame.id;
      failed.code = Errc::mismatch;
      failed.text = "the key holds a value that is no counter";
      send(rank, failed);
      return true;
    }
    bits = counter_bits(*found->second);
  }
  // Unsigned, so that a counter that runs over wraps instead of being undefined.
  const auto count = static_cast<std::int64_t>(bits + static_cast<std::uint64_t>(frame.delta));
  put(key, counter_value(count));
  send(rank, Counter{frame.id, count});
  return true;
}

bool StoreCore::on(std::int32_t rank, const Barrier& frame) {
  const RequestId request(rank, frame.id);
  if (in_use(request)) return false;
  std::string name(frame.name);
  if (failure_.has_value()) {
    Failed failed;
    failed.id = frame.id;
    failed.code = failure_->first;
    failed.text = failure_->second;
    send(rank, failed);
    return true;
  }
  Arrivals& arrivals = barriers_[name];
  if (arrivals.contains(rank)) {
    Failed failed;
    failed.id = frame.id;
    failed.code = Errc::mismatch;
    failed.text = "this rank waits in this barrier already";
    send(rank, failed);
    return true;
  }
  for (const std::int32_t other : gone_) {
    if (arrivals.contains(other)) continue;
    if (arrivals.empty()) barriers_.erase(name);
    fail_for_gone(request, other, name);
    return true;
  }
  arrivals.emplace(rank, frame.id);
  barrier_of_.emplace(request, name);
  if (arrivals.size() < members_.size()) return true;

  const Arrivals everyone = std::move(arrivals);
  barriers_.erase(name);
  for (const auto& [member, id] : everyone) {
    barrier_of_.erase({member, id});
    send(member, Done{id});
  }
  return true;
}

bool StoreCore::on(std::int32_t rank, const Withdraw& frame) {
  const RequestId request(rank, frame.id);
  Withdrawn answer;
  answer.id = frame.id;
  if (const auto found = waits_.find(request); found != waits_.end()) {
    const std::shared_ptr<PendingWait> wait = found->second;
    for (std::size_t i = 0; i < wait->keys.size(); ++i) {
      if (!values_.contains(wait->keys[i])) answer.missing.push_back(static_cast<std::uint32_t>(i));
    }
    forget(wait);
    send(rank, std::move(answer));
  } else if (const auto entered = barrier_of_.find(request); entered != barrier_of_.end()) {
    const auto barrier = barriers_.find(entered->second);
    WEFT_ASSERT(barrier != barriers_.end(), "store: a barrier has waiting ranks and is not there");
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!barrier->second.contains(static_cast<std::int32_t>(i))) {
        answer.missing.push_back(static_cast<std::uint32_t>(i));
      }
    }
    barrier->second.erase(rank);
    if (barrier->second.empty()) barriers_.erase(barrier);
    barrier_of_.erase(entered);
    send(rank, std::move(answer));
  }
  // Otherwise the answer to the request is on its way already.
  return true;
}

bool StoreCore::on(std::int32_t rank, const Goodbye& frame) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.state = State::left;
  member.goodbye = frame;
  gone_.push_back(rank);
  drop_requests(rank);
  send(rank, Farewell());
  broadcast(loss_frame(rank), rank);
  fail_barriers_without(rank);
  return true;
}

bool StoreCore::on(std::int32_t rank, const ConnectTo& frame) {
  if (frame.rank < 0 || static_cast<std::size_t>(frame.rank) >= members_.size() || frame.rank == rank) return false;
  Member& target = members_[static_cast<std::size_t>(frame.rank)];
  if (target.state == State::present) {
    send(frame.rank, ConnectRequest{rank});
  } else if (target.state == State::absent) {
    const auto& waiting = target.connect_from;
    if (std::find(waiting.begin(), waiting.end(), rank) == waiting.end()) target.connect_from.push_back(rank);
  }
  // A rank that is gone answers nobody; the asking rank has been told so.
  return true;
}

bool StoreCore::in_use(RequestId request) const {
  return waits_.contains(request) || barrier_of_.contains(request);
}

void StoreCore::put(const std::string& key, std::vector<std::byte> value) {
  values_[key] = std::make_shared<const std::vector<std::byte>>(std::move(value));
  const auto waiting = waits_of_key_.find(key);
  if (waiting == waits_of_key_.end()) return;
  const auto waits = std::move(waiting->second);
  waits_of_key_.erase(waiting);
  for (const std::shared_ptr<PendingWait>& wait : waits) {
    if (--wait->missing > 0) continue;
    waits_.erase(wait->request);
    answer(*wait);
  }
}

bool StoreCore::await_keys(RequestId request, std::vector<std::string> keys, bool wants_value) {
  if (in_use(request)) return false;
  auto wait = std::make_shared<PendingWait>();
  wait->request = request;
  wait->keys = std::move(keys);
  wait->wants_value = wants_value;
  std::vector<std::string> missing;
  for (const std::string& key : wait->keys) {
    if (!values_.contains(key)) missing.push_back(key);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  wait->missing = missing.size();
  if (missing.empty()) {
    answer(*wait);
    return true;
  }
  if (failure_.has_value()) {
    Failed failed;
    failed.id = request.second;
    failed.code = failure_->first;
    failed.text = failure_->second;
    send(request.first, failed);
    return true;
  }
  for (const std::string& key : missing)
    waits_of_key_[key].push_back(wait);
  waits_.emplace(request, std::move(wait));
  return true;
}

void StoreCore::answer(const PendingWait& wait) {
  const auto [rank, id] = wait.request;
  if (!wait.wants_value) {
    send(rank, Done{id});
    return;
  }
  const auto found = values_.find(wait.keys.front());
  WEFT_ASSERT(found != values_.end(), "store: an answer needs a value that is not there");
  OutFrame frame;
  frame.head = encode_value_head(id, found->second->size());
  frame.tail = found->second;
  output_.send(rank, std::move(frame));
}

void StoreCore::forget(const std::shared_ptr<PendingWait>& wait) {
  for (const std::string& key : wait->keys) {
    const auto waiting = waits_of_key_.find(key);
    if (waiting == waits_of_key_.end()) continue;
    std::erase(waiting->second, wait);
    if (waiting->second.empty()) waits_of_key_.erase(waiting);
  }
  waits_.erase(wait->request);
}

void StoreCore::drop_requests(std::int32_t rank) {
  const RequestId first(rank, 0);
  for (auto it = waits_.lower_bound(first); it != waits_.end() && it->first.first == rank;) {
    const std::shared_ptr<PendingWait> wait = (it++)->second;
    forget(wait);
  }
  // It stays counted in the barriers that it has entered: it did arrive.
  for (auto it = barrier_of_.lower_bound(first); it != barrier_of_.end() && it->first.first == rank;) {
    it = barrier_of_.erase(it);
  }
}

void StoreCore::fail_barriers_without(std::int32_t rank) {
  for (auto it = barriers_.begin(); it != barriers_.end();) {
    if (it->second.contains(rank)) {
      ++it;
      continue;
    }
    for (const auto& [member, id] : it->second) {
      barrier_of_.erase({member, id});
      fail_for_gone({member, id}, rank, it->first);
    }
    it = barriers_.erase(it);
  }
}

void StoreCore::fail_for_gone(RequestId request, std::int32_t gone_rank, std::string_view barrier) {
  const Member& member = members_[static_cast<std::size_t>(gone_rank)];
  Failed failed;
  failed.id = request.second;
  failed.rank = gone_rank;
  std::string text;
  if (member.state == State::lost) {
    failed.code = Errc::peer_lost;
    text = rank_text(gone_rank) + " was lost before it reached barrier '" + std::string(barrier) + "': " + member.cause;
  } else {
    failed.code = Errc::peer_closed;
    text = rank_text(gone_rank) + " left the job before it reached barrier '" + std::string(barrier) + "'";
    if (member.goodbye.at_fault != kNoRank) text += ", because of " + rank_text(member.goodbye.at_fault);
  }
  failed.text = text;
  send(request.first, failed);
}

Frame StoreCore::loss_frame(std::int32_t rank) const {
  const Member& member = members_[static_cast<std::size_t>(rank)];
  if (member.state == State::lost) {
    RankLost lost;
    lost.rank = rank;
    lost.cause = member.cause;
    return lost;
  }
  return RankLeft{rank, member.goodbye.code, member.goodbye.at_fault};
}

void StoreCore::send(std::int32_t rank, Frame frame) {
  OutFrame out;
  out.head = encode(std::move(frame));
  output_.send(rank, std::move(out));
}

void StoreCore::broadcast(const Frame& frame, std::int32_t except) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (rank != except && members_[i].state == State::present) send(rank, frame);
  }
}

}  // namespace weft::net::store
