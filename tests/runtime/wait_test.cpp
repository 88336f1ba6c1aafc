// Goal: a wait makes its coroutine ready once, by completion or by cancel, and refuses to start in a cancelled scope.
#include "weft/runtime/wait.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "weft/runtime/nursery.hpp"
#include "weft/runtime/sleep.hpp"

namespace weft {
namespace {

/// Ends when told to; a cancel is noted, and obeyed later, as an operation does whose buffer is still in use.
class Held final : public Wait {
 public:
  explicit Held(Held** self) noexcept : self_(self) { *self_ = this; }
  ~Held() { *self_ = nullptr; }
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <WeftPromise P>
  bool await_suspend(std::coroutine_handle<P> waiting) noexcept {
    return begin(waiting.promise());
  }
  [[nodiscard]] Errc await_resume() const noexcept { return code(); }

  void end(Errc code) noexcept { complete(code); }
  std::optional<Errc> asked;

 private:
  void on_cancel(Errc reason) noexcept override {
    EXPECT_FALSE(asked.has_value());
    asked = reason;
  }
  Held** self_;
};

Task<void> hold(Held** held, Errc* ended) {
  *ended = Errc::io;
  *ended = co_await Held(held);
}

Task<void> complete_it(Nursery& nursery, Errc* ended) {
  Held* held = nullptr;
  nursery.start(hold(&held, ended));
  co_await yield();
  EXPECT_TRUE(held->waiting());
  held->end(Errc::ok);
  EXPECT_FALSE(held->waiting());
  nursery.cancel();  // too late: the wait has left the scope
  EXPECT_FALSE(held->asked.has_value());
  EXPECT_EQ(*ended, Errc::io);  // not resumed from inside
  co_await yield();
}

TEST(Wait, CompletesOnce) {
  Reactor reactor;
  Errc ended = Errc::io;
  reactor.run(with_nursery(&complete_it, &ended));
  EXPECT_EQ(ended, Errc::ok);
}

Task<void> cancel_and_let_go_later(Nursery& nursery, Errc* ended) {
  Held* held = nullptr;
  nursery.start(hold(&held, ended));
  co_await yield();
  nursery.cancel();
  co_await yield();
  co_await yield();
  EXPECT_EQ(held->asked, Errc::cancelled);
  EXPECT_TRUE(held->waiting());  // still: the memory is in use
  held->end(Errc::cancelled);
  co_await yield();
}

TEST(Wait, ACancelIsARequest) {
  Reactor reactor;
  Errc ended = Errc::io;
  reactor.run(with_nursery(&cancel_and_let_go_later, &ended));
  EXPECT_EQ(ended, Errc::cancelled);
}

Task<void> cancelled_before(Nursery& nursery, Errc* ended) {
  Held* held = nullptr;
  nursery.cancel();
  co_await hold(&held, ended);
}

TEST(Wait, DoesNotSuspendInACancelledScope) {
  Reactor reactor;
  Errc ended = Errc::io;
  reactor.run(with_nursery(&cancelled_before, &ended));
  EXPECT_EQ(ended, Errc::cancelled);
}

TEST(Wait, AFailureIsThrownWithItsOperation) {
  EXPECT_NO_THROW(throw_if_failed(Errc::ok, "nap"));
  try {
    throw_if_failed(Errc::timed_out, "nap");
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::timed_out);
    EXPECT_STREQ(error.what(), "nap: timed out");
  }
}

}  // namespace
}  // namespace weft
