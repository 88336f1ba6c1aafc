// The awaiters behind send, recv and sendrecv. They live in the frame of the coroutine that awaits them: an operation
// allocates nothing. await_suspend starts the requests; when they are done at once the coroutine does not suspend.
#pragma once

#include <cstdint>
#include <span>

#include "weft/net/group.hpp"
#include "weft/net/message.hpp"
#include "weft/net/protocol/request.hpp"
#include "weft/runtime/timer_wheel.hpp"
#include "weft/runtime/wait.hpp"

namespace weft::net {

/// What an error message calls the operation, and for the steps of a collective which collective they belong to.
struct OperationName {
  const char* name = "";        ///< a literal
  std::uint64_t number = 0;     ///< of the collective on its communicator; 0: not a collective
  std::uint32_t signature = 0;  ///< travels with every message of the collective, and must agree
};

/// What the awaiters have in common: one or two requests, a cancel scope, and the communicator's default timeout.
class Operation : public Wait, public RequestOwner, private Timer {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }

 protected:
  Operation(Group& group, OperationName name) noexcept : group_(group), name_(name) {}
  ~Operation() = default;

  /// True when `waiter` may start: its scope has not been cancelled, and a step of a collective still has a point.
  [[nodiscard]] bool may_start(PromiseBase& waiter) noexcept {
    refused_ = waiter.scope == nullptr ? Errc::ok : waiter.scope->requested();
    if (name_.number != 0 && !group_.broken().ok()) [[unlikely]] refused_ = group_.broken().code;
    return refused_ == Errc::ok;
  }
  /// After the requests were started. False when they are done already.
  [[nodiscard]] bool suspend(PromiseBase& waiter) noexcept {
    if (pending_ == 0) return false;
    (void)begin(waiter);  // may_start() has asked the scope
    if (group_.default_timeout() > Duration::zero()) arm_timeout(*waiter.reactor);
    return true;
  }

  void on_request_done() noexcept final {
    --pending_;
    if (pending_ != 0) return one_done();
    if (!waiting()) return;
    disarm_timeout();
    complete();
  }

  /// One of two requests is done: if it failed, the other must not be waited for.
  virtual void one_done() noexcept {}
  /// Passes a cancel on to the requests that are not done.
  virtual void cancel_requests(Errc reason) noexcept = 0;

  /// The message is of a collective, and its sender was in another one.
  [[nodiscard]] bool disagrees(const RecvRequest& request) const noexcept {
    return name_.number != 0 && request.note != name_.signature;
  }

  [[noreturn, gnu::cold]] void fail_send(const SendRequest& request) const;
  [[noreturn, gnu::cold]] void fail_recv(const RecvRequest& request) const;
  [[noreturn, gnu::cold]] void fail_refused() const;

  Group& group_;
  OperationName name_;
  Errc refused_ = Errc::ok;
  int pending_ = 0;

 private:
  /// Throws what `outcome` stands for; `action` says what was being done ("sending 8 bytes to rank 3").
  [[noreturn]] void fail(Outcome outcome, const std::string& action) const;
  void on_cancel(Errc reason) noexcept final { cancel_requests(reason); }
  void on_timer() noexcept final { cancel_requests(Errc::timed_out); }
  void arm_timeout(Reactor& reactor) noexcept;
  void disarm_timeout() noexcept;

  Reactor* reactor_ = nullptr;  ///< set while a timeout is armed
};

/// Awaits one message out.
class [[nodiscard]] SendOperation final : public Operation {
 public:
  SendOperation(Group& group, OperationName name, Rank to, std::uint32_t context, Tag tag,
                std::span<const std::byte> bytes);

  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
    if (!may_start(waiting.promise())) return false;
    pending_ = 1;
    group_.messenger().start_send(request_);
    return suspend(waiting.promise());
  }
  void await_resume() const {
    if (refused_ != Errc::ok) [[unlikely]] fail_refused();
    if (!request_.outcome.ok()) [[unlikely]] fail_send(request_);
  }

 private:
  void cancel_requests(Errc reason) noexcept override;
  SendRequest request_;
};

/// Awaits one message in; gives its MessageInfo.
class [[nodiscard]] RecvOperation final : public Operation {
 public:
  RecvOperation(Group& group, OperationName name, Rank from, std::uint32_t context, TagPattern tag,
                std::span<std::byte> bytes);

  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
    if (!may_start(waiting.promise())) return false;
    pending_ = 1;
    group_.messenger().start_recv(request_);
    return suspend(waiting.promise());
  }
  MessageInfo await_resume() const {
    if (refused_ != Errc::ok) [[unlikely]] fail_refused();
    if (!request_.outcome.ok() || disagrees(request_)) [[unlikely]] fail_recv(request_);
    return MessageInfo{group_.rank_of(request_.source), request_.tag, request_.length};
  }

 private:
  void cancel_requests(Errc reason) noexcept override;
  RecvRequest request_;
};

/// Awaits one message out and one in, which run at once. When either fails the other is cancelled; both have let go of
/// their buffers when it ends.
class [[nodiscard]] SendRecvOperation final : public Operation {
 public:
  SendRecvOperation(Group& group, OperationName name, std::uint32_t context, Rank to, Tag send_tag,
                    std::span<const std::byte> out, Rank from, TagPattern recv_tag, std::span<std::byte> in);

  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
    if (!may_start(waiting.promise())) return false;
    pending_ = 2;
    group_.messenger().start_recv(recv_);  // first, so that the answer finds it
    group_.messenger().start_send(send_);
    both_started_ = true;
    if (pending_ == 1) one_done();
    return suspend(waiting.promise());
  }
  MessageInfo await_resume() const {
    if (refused_ != Errc::ok) [[unlikely]] fail_refused();
    if (!recv_.outcome.ok() || !send_.outcome.ok() || disagrees(recv_)) [[unlikely]] fail_either();
    return MessageInfo{group_.rank_of(recv_.source), recv_.tag, recv_.length};
  }

 private:
  void one_done() noexcept override;
  void cancel_requests(Errc reason) noexcept override;
  [[noreturn, gnu::cold]] void fail_either() const;
  SendRequest send_;
  RecvRequest recv_;
  bool both_started_ = false;
};

/// What Communicator::send gives: the operation before it starts. Trivial to copy; each await of it sends once more.
/// Lifetime: the communicator and the bytes, until the await ends.
struct SendCall {
  Group* group;
  Rank to;
  Tag tag;
  std::span<const std::byte> bytes;

  [[nodiscard]] SendOperation operator co_await() const {
    return {*group, OperationName{"send"}, to, group->context(), tag, bytes};
  }
};

/// What Communicator::recv gives. As SendCall.
struct RecvCall {
  Group* group;
  Rank from;
  TagPattern tag;
  std::span<std::byte> bytes;

  [[nodiscard]] RecvOperation operator co_await() const {
    return {*group, OperationName{"recv"}, from, group->context(), tag, bytes};
  }
};

/// What Communicator::sendrecv gives. As SendCall.
struct SendRecvCall {
  Group* group;
  Rank to;
  Tag send_tag;
  std::span<const std::byte> out;
  Rank from;
  TagPattern recv_tag;
  std::span<std::byte> in;

  [[nodiscard]] SendRecvOperation operator co_await() const {
    return {*group, OperationName{"sendrecv"}, group->context(), to, send_tag, out, from, recv_tag, in};
  }
};

/// Errors: throws Error(invalid_argument) when `rank` is no member of `group`; any_rank passes where `any` says so.
void check_rank(const Group& group, const char* operation, Rank rank, bool any);

}  // namespace weft::net
