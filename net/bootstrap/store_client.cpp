#include "weft/net/bootstrap/store_client.hpp"

#include <algorithm>
#include <variant>

#include "weft/net/bootstrap/handshake.hpp"
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/current.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft::net {

/// The answer to one request, in the frame of the operation that waits for it.
struct StoreClient::Reply {
  explicit Reply(StoreClient& owner) : client(owner), id(owner.next_id_++) { client.replies_.emplace(id, this); }
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply() { client.replies_.erase(id); }

  StoreClient& client;
  std::uint32_t id;
  Event done;
  bool timed_out = false;  ///< no answer; `missing` says what it waits for, if the store could be asked
  std::optional<Error> failure;
  std::vector<std::byte> value;
  std::int64_t count = 0;
  std::optional<std::vector<std::uint32_t>> missing;
};

namespace {

constexpr std::string_view kEveryone = "weft.start";
// Welcome, or a refusal with its text.
constexpr std::size_t kMaxWelcomeBytes = 1024;
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(500);
constexpr std::size_t kMaxListed = 16;

Task<void> wait_for(Event& event) {
  co_await event.wait();
}

[[nodiscard]] std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMaxListed; ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > kMaxListed) text += " and " + std::to_string(names.size() - kMaxListed) + " more";
  return text;
}

[[nodiscard]] std::string listed_ranks(const std::vector<std::uint32_t>& ranks) {
  std::vector<std::string> names;
  for (const std::uint32_t rank : ranks)
    names.push_back(std::to_string(rank));
  return (names.size() == 1 ? "rank " : "ranks ") + listed(names);
}

[[nodiscard]] std::string in_seconds(Duration time) {
  std::string text = std::to_string(std::chrono::duration<double>(time).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

void check_key(std::string_view key, std::string_view operation) {
  if (key.empty() || key.size() > store::kMaxKeyBytes) {
    throw Error(
        Errc::invalid_argument, operation,
        "a key has 1 to " + std::to_string(store::kMaxKeyBytes) + " bytes, this one " + std::to_string(key.size()));
  }
}

}  // namespace

StoreClient::StoreClient(Reactor& reactor, StoreClientOptions options, const JobToken& token, StoreEvents* events)
    : reactor_(reactor), options_(std::move(options)), token_(token), events_(events) {}

StoreClient::~StoreClient() {
  WEFT_ASSERT(state_ == State::fresh || state_ == State::ended, "a store client was destroyed while it is connected");
}

Task<void> StoreClient::start(Nursery& nursery) {
  WEFT_ASSERT(state_ == State::fresh, "a store client is started once");
  const Instant deadline = saturating_add(reactor_.clock().now(), options_.start_timeout);
  co_await join(deadline);
  writer_.emplace(socket_);
  state_ = State::joined;
  nursery.start(run());
  co_await await_everyone(deadline);
}

Task<void> StoreClient::join(Instant deadline) {
  Duration pause = kFirstPause;
  while (true) {
    Result<void> joined = co_await as_result(join_once(deadline));
    if (joined) co_return;
    socket_.close();
    // A server that is starting, or has its places full of strangers, hangs up; that says nothing about the next time.
    const bool may_pass = joined.code() == Errc::peer_closed || joined.code() == Errc::peer_lost;
    const Instant now = reactor_.clock().now();
    // A name that does not resolve is an error at once; an address that does not answer is tried until the deadline.
    const bool out_of_time = joined.code() == Errc::unreachable && now >= deadline;
    if (!may_pass && !out_of_time) throw Error(joined.error());
    if (saturating_add(now, pause) >= deadline) {
      throw Error(Errc::timed_out, "store start",
                  "the store of rank 0 at " + options_.host + ":" + std::to_string(options_.port) +
                      " let nobody in within " + in_seconds(options_.start_timeout) +
                      "; last: " + joined.error().what(),
                  0);
    }
    co_await sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Task<void> StoreClient::join_once(Instant deadline) {
  Socket connected = co_await connect_tcp(reactor_, options_.host, options_.port, deadline);
  socket_ = std::move(connected);
  store::prepare_connection(socket_);
  Task<void> admission = be_admitted();
  co_await with_deadline(deadline, std::move(admission));
}

Task<void> StoreClient::be_admitted() {
  PeerHello mine{Purpose::store, options_.rank};
  co_await handshake_as_client(socket_, token_, mine);
  const std::vector<std::byte> join = store::encode(store::Join{options_.rank, options_.world_size});
  co_await socket_.write_all(join);
  std::optional<std::vector<std::byte>> bytes = co_await store::read_frame(socket_, kMaxWelcomeBytes);
  if (!bytes.has_value()) {
    throw Error(Errc::peer_closed, "store start", "the store at " + socket_.peer() + " closed the connection");
  }
  const std::optional<store::Frame> frame = store::decode(*bytes);
  if (frame.has_value() && std::holds_alternative<store::Welcome>(*frame)) co_return;
  if (frame.has_value() && std::holds_alternative<store::Refused>(*frame)) {
    const auto& refused = std::get<store::Refused>(*frame);
    throw Error(refused.code, "store start", refused.text);
  }
  throw Error(Errc::protocol, "store start", socket_.peer() + " answered with something that no store sends");
}

Task<void> StoreClient::await_everyone(Instant deadline) {
  Reply reply(*this);
  Task<void> entered = await_reply(&reply, store::encode(store::Barrier{reply.id, kEveryone}));
  co_await with_deadline(deadline, std::move(entered));
  if (!reply.timed_out) co_return;
  std::string reason;
  if (reply.missing.has_value()) {
    reason = listed_ranks(*reply.missing) + " of " + std::to_string(options_.world_size) + " did not join";
  } else {
    reason = "not all of " + std::to_string(options_.world_size) + " ranks joined";
  }
  throw_timed_out(reply, "store start", reason + " within " + in_seconds(options_.start_timeout));
}

Task<void> StoreClient::run() {
  Task<void> exchanging = with_nursery(&StoreClient::exchange, this);
  Result<void> ended = co_await as_result(std::move(exchanging));
  // Cancelled by whoever owns the nursery: this rank is going down, and to nobody here is that news.
  if (!ended) state_ = State::ended;
  end(cause_);
}

Task<void> StoreClient::exchange(Nursery& nursery, StoreClient* self) {
  nursery.start(self->writer_->run());
  try {
    co_await self->read_frames();
    self->cause_ = "it closed the connection";
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled || error.code() == Errc::timed_out) throw;
    self->cause_ = self->writer_->broken() ? self->writer_->failure() : std::string(error.what());
  }
  nursery.cancel();
}

Task<void> StoreClient::read_frames() {
  while (true) {
    std::optional<std::vector<std::byte>> bytes = co_await store::read_frame(socket_, store::kMaxFrameBytes);
    if (!bytes.has_value()) co_return;
    const std::optional<store::Frame> frame = store::decode(*bytes);
    if (!frame.has_value()) throw Error(Errc::protocol, "store", "it sent a frame that no store sends");
    std::visit([this](const auto& body) { on(body); }, *frame);
  }
}

void StoreClient::end(std::string_view cause) {
  const bool lost = state_ == State::joined;
  state_ = State::ended;
  const std::string peer = socket_.peer();
  socket_.close();
  if (!failure_.has_value()) {
    failure_.emplace(Errc::peer_lost, "store",
                     "the connection to rank 0 at " + peer + " is lost: " + std::string(cause), 0);
  }
  fail_requests(*failure_);
  farewell_.set();
  if (lost && events_ != nullptr) events_->on_store_lost(cause);
}

void StoreClient::close() noexcept {
  if (state_ == State::ended) return;
  state_ = State::ended;
  if (!failure_.has_value())
    failure_.emplace(Errc::closed, "store", "this rank has closed its connection to the store");
  fail_requests(*failure_);
  // run() meets the closed socket and ends.
  socket_.close();
}

void StoreClient::fail_requests(const Error& error) {
  for (const auto& [id, reply] : replies_) {
    if (reply->done.is_set()) continue;
    reply->failure = error;
    reply->done.set();
  }
}

Task<void> StoreClient::await_reply(Reply* reply, std::vector<std::byte> request) {
  if (failure_.has_value()) throw Error(*failure_);
  if (state_ != State::joined) throw Error(Errc::closed, "store", "this rank has not joined the store");
  store::OutFrame frame;
  frame.head = std::move(request);
  writer_->push(std::move(frame));
  Task<void> answer = wait_for(reply->done);
  Result<void> waited = co_await as_result(std::move(answer));
  if (!waited && !reply->done.is_set()) {
    if (waited.code() != Errc::timed_out) {
      push(store::Withdraw{reply->id});
      throw Error(waited.error());
    }
    co_await ask_what_is_missing(reply);
  }
  if (reply->failure.has_value()) throw Error(*reply->failure);
}

Task<void> StoreClient::ask_what_is_missing(Reply* reply) {
  push(store::Withdraw{reply->id});
  // The time around this operation is over already; the question gets a little of its own.
  PromiseBase& self = co_await detail::this_coroutine();
  CancelScope* const outer = self.scope;
  CancelScope shield;
  self.scope = &shield;
  Task<void> answer = wait_for(reply->done);
  Task<void> limited = with_deadline(kMissingGrace, std::move(answer));
  Result<void> answered = co_await as_result(std::move(limited));
  self.scope = outer;
  // The answer proper may have been on its way all along; then the operation has succeeded after all.
  reply->timed_out = !answered || reply->missing.has_value();
}

void StoreClient::throw_timed_out(const Reply& reply, std::string_view operation, std::string reason) const {
  if (!reply.missing.has_value()) reason += "; rank 0, which holds the store, does not answer";
  const std::int32_t at_fault = reply.missing.has_value() ? kNoRank : 0;
  throw Error(Errc::timed_out, operation, reason, at_fault);
}

Task<void> StoreClient::set(std::string key, std::span<const std::byte> value) {
  check_key(key, "store set");
  if (value.size() > store::kMaxValueBytes) {
    throw Error(Errc::invalid_argument, "store set",
                "'" + key + "' is to hold " + std::to_string(value.size()) + " bytes, at most " +
                    std::to_string(store::kMaxValueBytes) + " fit");
  }
  Reply reply(*this);
  std::vector<std::byte> request = store::encode(store::Set{reply.id, key, value});
  co_await await_reply(&reply, std::move(request));
  if (reply.timed_out) throw_timed_out(reply, "store set", "'" + key + "' was not confirmed in time");
}

Task<std::vector<std::byte>> StoreClient::get(std::string key) {
  check_key(key, "store get");
  Reply reply(*this);
  std::vector<std::byte> request = store::encode(store::Get{reply.id, key});
  co_await await_reply(&reply, std::move(request));
  if (reply.timed_out) throw_timed_out(reply, "store get", "no rank has set '" + key + "' in time");
  co_return std::move(reply.value);
}

Task<void> StoreClient::wait_all(std::vector<std::string> keys) {
  std::size_t bytes = 0;
  for (const std::string& key : keys) {
    check_key(key, "store wait");
    bytes += key.size() + sizeof(std::uint16_t);
  }
  if (bytes > store::kMaxValueBytes) {
    throw Error(Errc::invalid_argument, "store wait", "the list of keys is longer than a frame may be");
  }
  Reply reply(*this);
  store::WaitAll request;
  request.id = reply.id;
  request.keys.assign(keys.begin(), keys.end());
  std::vector<std::byte> frame = store::encode(std::move(request));
  co_await await_reply(&reply, std::move(frame));
  if (!reply.timed_out) co_return;
  std::vector<std::string> missing;
  for (const std::uint32_t place : reply.missing.value_or(std::vector<std::uint32_t>())) {
    if (place < keys.size()) missing.push_back("'" + keys[place] + "'");
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  const std::string which = reply.missing.has_value() ? "keys not set in time: " + listed(missing)
                                                      : std::string("not all keys were set in time");
  throw_timed_out(reply, "store wait", which);
}

Task<std::int64_t> StoreClient::add(std::string key, std::int64_t delta) {
  check_key(key, "store add");
  Reply reply(*this);
  std::vector<std::byte> request = store::encode(store::Add{reply.id, key, delta});
  co_await await_reply(&reply, std::move(request));
  if (reply.timed_out) throw_timed_out(reply, "store add", "'" + key + "' was not counted in time");
  co_return reply.count;
}

Task<void> StoreClient::barrier(std::string name) {
  check_key(name, "store barrier");
  Reply reply(*this);
  std::vector<std::byte> request = store::encode(store::Barrier{reply.id, name});
  co_await await_reply(&reply, std::move(request));
  if (!reply.timed_out) co_return;
  const std::string who = reply.missing.has_value() ? listed_ranks(*reply.missing) : std::string("some rank");
  throw_timed_out(reply, "store barrier", who + " did not come to barrier '" + name + "' in time");
}

void StoreClient::request_connection(std::int32_t rank) {
  if (state_ == State::joined) push(store::ConnectTo{rank});
}

Task<void> StoreClient::goodbye(std::int32_t code, std::int32_t at_fault) {
  if (state_ != State::joined) {
    close();
    co_return;
  }
  push(store::Goodbye{code, at_fault});
  state_ = State::leaving;
  if (!failure_.has_value()) failure_.emplace(Errc::closed, "store", "this rank has said goodbye");
  fail_requests(*failure_);
  Task<void> farewell = wait_for(farewell_);
  Task<void> limited = with_deadline(kFarewellTimeout, std::move(farewell));
  Result<void> answered = co_await as_result(std::move(limited));
  close();
  if (!answered && answered.code() == Errc::cancelled) throw Error(answered.error());
}

StoreClient::Reply* StoreClient::find(std::uint32_t id) noexcept {
  // An answer to a request that has been given up finds nobody.
  const auto found = replies_.find(id);
  return found == replies_.end() ? nullptr : found->second;
}

void StoreClient::push(store::Frame frame) {
  if (state_ == State::ended || !writer_.has_value()) return;
  store::OutFrame out;
  out.head = store::encode(std::move(frame));
  writer_->push(std::move(out));
}

void StoreClient::on(const store::Done& frame) {
  if (Reply* const reply = find(frame.id)) reply->done.set();
}

void StoreClient::on(const store::Value& frame) {
  Reply* const reply = find(frame.id);
  if (reply == nullptr) return;
  reply->value.assign(frame.value.begin(), frame.value.end());
  reply->done.set();
}

void StoreClient::on(const store::Counter& frame) {
  Reply* const reply = find(frame.id);
  if (reply == nullptr) return;
  reply->count = frame.count;
  reply->done.set();
}

void StoreClient::on(const store::Failed& frame) {
  Reply* const reply = find(frame.id);
  if (reply == nullptr) return;
  reply->failure.emplace(frame.code, "store", frame.text, frame.rank);
  reply->done.set();
}

void StoreClient::on(const store::Withdrawn& frame) {
  Reply* const reply = find(frame.id);
  if (reply == nullptr) return;
  reply->missing = frame.missing;
  reply->done.set();
}

void StoreClient::on(const store::RankLost& frame) {
  if (events_ != nullptr) events_->on_rank_lost(frame.rank, frame.rank, frame.cause);
}

void StoreClient::on(const store::RankLeft& frame) {
  if (events_ != nullptr) events_->on_rank_left(frame.rank, frame.code, frame.at_fault);
}

void StoreClient::on(const store::ConnectRequest& frame) {
  if (events_ != nullptr) events_->on_connect_request(frame.from);
}

void StoreClient::on(const store::JobFailed& frame) {
  failure_.emplace(frame.code, "store", frame.text);
  fail_requests(*failure_);
}

void StoreClient::on(const store::Farewell& /*frame*/) {
  farewell_.set();
}

template <typename T>
void StoreClient::on(const T& /*frame*/) {
  throw Error(Errc::protocol, "store", "it sent a frame that no store sends");
}

}  // namespace weft::net
