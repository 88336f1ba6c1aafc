// Channel<T>: a bounded queue between tasks of one reactor, several senders and receivers.
//
// A full channel suspends senders, an empty one receivers, each in the order in which they came. close() lets receivers
// take what is queued; then they get nothing, and senders get Errc::closed. A cancelled send has not sent; a cancelled
// receive has not taken anything.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "weft/runtime/wait.hpp"

namespace weft {

/// See the top of the file. T is movable. Pinned. Thread: the reactor's.
template <typename T>
class Channel {
 public:
  /// `capacity` 0 is a rendezvous: a send completes when a receiver has taken the value.
  explicit Channel(std::size_t capacity) : capacity_(capacity) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  class [[nodiscard]] Send final : public Wait, public ListHook<Channel> {
   public:
    Send(Channel& channel, T value) : channel_(channel), value_(std::move(value)) {}
    [[nodiscard]] bool await_ready() { return channel_.closed_ || channel_.accept(value_); }
    template <WeftPromise P>
    bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
      if (!begin(waiting.promise())) return false;
      channel_.senders_.push_back(*this);
      return true;
    }
    void await_resume() const {
      throw_if_failed(code(), "channel send");
      if (value_.has_value()) throw Error(Errc::closed, "channel send", "the channel is closed");
    }

   private:
    friend class Channel;
    void on_cancel(Errc reason) noexcept override {
      ListHook<Channel>::unlink();
      complete(reason);
    }
    Channel& channel_;
    std::optional<T> value_;  ///< empty once the channel has it
  };

  class [[nodiscard]] Receive final : public Wait, public ListHook<Channel> {
   public:
    explicit Receive(Channel& channel) noexcept : channel_(channel) {}
    [[nodiscard]] bool await_ready() {
      value_ = channel_.take();
      return value_.has_value() || channel_.closed_;
    }
    template <WeftPromise P>
    bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
      if (!begin(waiting.promise())) return false;
      channel_.receivers_.push_back(*this);
      return true;
    }
    [[nodiscard]] std::optional<T> await_resume() {
      throw_if_failed(code(), "channel receive");
      return std::move(value_);
    }

   private:
    friend class Channel;
    void on_cancel(Errc reason) noexcept override {
      ListHook<Channel>::unlink();
      complete(reason);
    }
    Channel& channel_;
    std::optional<T> value_;
  };

  /// Completes when the value is queued or taken. Errors: closed, cancelled, timed_out.
  [[nodiscard]] Send send(T value) { return Send(*this, std::move(value)); }
  /// The oldest value, or nothing when the channel is closed and empty. Errors: cancelled, timed_out.
  [[nodiscard]] Receive receive() noexcept { return Receive(*this); }

  /// No more sends. Waiting senders get Errc::closed, waiting receivers nothing. May be called again.
  void close() noexcept {
    closed_ = true;
    while (Send* sender = senders_.pop_front()) sender->complete();
    while (Receive* receiver = receivers_.pop_front()) receiver->complete();
  }

  [[nodiscard]] bool closed() const noexcept { return closed_; }
  [[nodiscard]] std::size_t size() const noexcept { return queue_.size(); }

 private:
  /// Hands `value` to a waiting receiver or queues it; false when there is room for neither.
  bool accept(std::optional<T>& value) {
    if (Receive* receiver = receivers_.pop_front()) {
      receiver->value_ = std::exchange(value, std::nullopt);
      receiver->complete();
      return true;
    }
    if (queue_.size() >= capacity_) return false;
    queue_.push_back(std::move(*value));
    value.reset();
    return true;
  }

  /// The oldest value, and the first waiting sender moves up.
  std::optional<T> take() {
    std::optional<T> value;
    if (!queue_.empty()) {
      value.emplace(std::move(queue_.front()));
      queue_.pop_front();
      if (!senders_.empty()) {
        Send* sender = senders_.pop_front();
        queue_.push_back(std::move(*sender->value_));
        sender->value_.reset();
        sender->complete();
      }
    } else if (Send* sender = senders_.pop_front()) {
      value = std::exchange(sender->value_, std::nullopt);
      sender->complete();
    }
    return value;
  }

  std::size_t capacity_;
  bool closed_ = false;
  std::deque<T> queue_;
  IntrusiveList<Send, Channel> senders_;
  IntrusiveList<Receive, Channel> receivers_;
};

}  // namespace weft
