// Goal: what this compiler really does with the coroutine shapes that compilers are known to get wrong. The state of
// each is printed. Only the shapes that Weft's own rules allow must work; the others are told, not demanded, so that a
// better compiler passes and a worse one is seen. Shapes that end the compiler itself are in rejected_shapes.cpp.
//
// Each shape runs in a process of its own, because a broken one may crash or never end.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coroutine>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/lifetime_tracked.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/sleep.hpp"
#include "weft/runtime/task.hpp"

namespace weft {
namespace {

using test::LifetimeTracked;

constexpr int kWorks = 0;
constexpr int kWrong = 1;
constexpr int kDestroyedTwice = 2;
constexpr int kNeverDestroyed = 3;
constexpr int kNeverEnds = 4;

// ---- pieces -------------------------------------------------------------------------------------------------------

Task<int> number(int value) {
  co_await yield();
  co_return value;
}
Task<bool> truth(bool value) {
  co_await yield();
  co_return value;
}
Task<std::tuple<int, LifetimeTracked>> pair_of(int value) {
  co_await yield();
  co_return std::tuple<int, LifetimeTracked>(value, LifetimeTracked(value));
}
Task<int> by_value(LifetimeTracked value) {
  co_await yield();
  co_return value.value();
}
Task<int> by_reference(const LifetimeTracked& value) {
  co_await yield();
  co_return value.value();
}
struct Aggregate {
  LifetimeTracked value{};
  std::unique_ptr<int> owned{};
};
Task<int> by_aggregate(Aggregate aggregate) {
  co_await yield();
  co_return aggregate.value.value();
}
struct Options {
  explicit Options(int number_value) : value(number_value), owned(std::make_unique<int>(number_value)) {}
  LifetimeTracked value;
  std::unique_ptr<int> owned;
};
Task<int> by_options(Options options) {
  co_await yield();
  co_return options.value.value();
}

/// An awaiter that suspends, such as Weft's operations: a class with constructor, given out by a function.
class Operation {
 public:
  explicit Operation(LifetimeTracked value) : value_(std::move(value)) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <WeftPromise P>
  void await_suspend(std::coroutine_handle<P> waiting) noexcept {
    waiting.promise().reactor->make_ready(waiting.promise());
  }
  [[nodiscard]] int await_resume() const noexcept { return value_.value(); }

 private:
  LifetimeTracked value_;
};
Operation operate(int value) { return Operation(LifetimeTracked(value)); }

// ---- shapes that Weft's rules allow ---------------------------------------------------------------------------------

Task<int> named_argument() {
  LifetimeTracked argument(1);
  const int value = co_await by_value(std::move(argument));
  co_return value;
}
Task<int> named_task() {
  Task<int> task = number(1);
  const int value = co_await std::move(task);
  co_return value;
}
Task<int> operation_in_the_frame() {
  const int value = co_await operate(1);
  co_return value;
}
Task<int> statement_and_return() {
  co_await number(5);
  co_return co_await number(1);
}
Task<int> in_a_loop() {
  int sum = 0;
  for (int i = 0; i < 100; ++i) {
    LifetimeTracked argument(i);
    const int value = co_await by_value(std::move(argument));
    sum += value;
  }
  co_return sum == 4950 ? 1 : 0;
}
Task<int> in_a_try_block() {
  try {
    LifetimeTracked argument(1);
    const int value = co_await by_value(std::move(argument));
    if (value == 1) throw std::runtime_error("on purpose");
  } catch (const std::runtime_error&) {
    co_return 1;
  }
  co_return 0;
}
Task<int> captureless_lambda() {
  const auto coroutine = [](int value) -> Task<int> {
    co_await yield();
    co_return value;
  };
  const int value = co_await coroutine(1);
  co_return value;
}
Task<int> named_before_binding() {
  auto both = co_await pair_of(1);
  const auto& [first, second] = both;
  co_return first == second.value() ? 1 : 0;
}
Task<int> aggregate_named_first() {
  Aggregate aggregate;
  aggregate.value = LifetimeTracked(1);
  const int value = co_await by_aggregate(std::move(aggregate));
  co_return value;
}
Task<int> class_temporary() {
  const int value = co_await by_options(Options(1));
  co_return value;
}
Task<int> const_reference_to_a_temporary() {
  const int value = co_await by_reference(LifetimeTracked(1));
  co_return value;
}

// ---- shapes that Weft's rules forbid --------------------------------------------------------------------------------

Task<int> aggregate_temporary() {
  const int value = co_await by_aggregate(Aggregate{LifetimeTracked(1), nullptr});
  co_return value;
}
Task<int> empty_braces() {
  const int value = co_await by_aggregate({});
  co_return value + 1;
}
Task<int> lambda_with_captures() {
  const LifetimeTracked captured(1);
  const int value = co_await [captured]() -> Task<int> {
    const int inner = captured.value();
    co_await yield();
    co_return inner;
  }();
  co_return value;
}
Task<int> switch_head() {
  switch (co_await number(1)) {
    case 1: co_return 1;
    default: co_return 0;
  }
}
Task<int> if_head() {
  if (co_await truth(true)) co_return 1;
  co_return 0;
}
Task<int> if_head_with_a_temporary() {
  if (co_await by_value(LifetimeTracked(1)) == 1) co_return 1;
  co_return 0;
}
Task<int> while_head() {
  int rounds = 0;
  while (co_await truth(rounds < 3)) ++rounds;
  co_return rounds == 3 ? 1 : 0;
}
Task<int> range_for_head() {
  int sum = 0;
  for (const int value : std::vector<int>(3, co_await number(2))) sum += value;
  co_return sum == 6 ? 1 : 0;
}
Task<bool> counted(int* calls) {
  ++*calls;
  co_await yield();
  co_return true;
}
Task<int> and_or() {
  int calls = 0;
  const bool no = calls != 0 && co_await counted(&calls);
  const bool yes = calls == 0 || co_await counted(&calls);
  const bool both = co_await counted(&calls) && co_await counted(&calls);
  co_return !no && yes && both && calls == 2 ? 1 : 0;
}
Task<int> conditional_operator() {
  int calls = 0;
  const int value = calls == 0 ? co_await by_value(LifetimeTracked(1)) : co_await by_value(LifetimeTracked(2));
  co_return value;
}
Task<int> as_an_argument() {
  const int value = co_await by_value(LifetimeTracked(co_await number(1)));
  co_return value;
}
Task<int> binding_straight_from_await() {
  const auto [first, second] = co_await pair_of(1);
  co_return first == second.value() ? 1 : 0;
}

// ---- properties ---------------------------------------------------------------------------------------------------

struct alignas(64) Wide {
  int value = 1;
};
Task<int> wide_in_each_frame(int levels) {  // many frames at once, so that luck has little chance
  Wide wide;
  co_await yield();
  if (reinterpret_cast<std::uintptr_t>(&wide) % alignof(Wide) != 0) co_return 0;
  if (levels == 0) co_return wide.value;
  const auto shift = std::make_unique<char>();
  const int rest = co_await wide_in_each_frame(levels - 1);
  co_return rest;
}
Task<int> over_aligned_local() { return wide_in_each_frame(32); }

/// A coroutine whose children are resumed and ended by handles alone, without Weft's care for the stack.
struct Bare {
  struct promise_type {
    std::coroutine_handle<> parent = std::noop_coroutine();
    Bare get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct Final {
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
        return ended.promise().parent;
      }
      void await_resume() const noexcept {}
    };
    [[nodiscard]] Final final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::abort(); }
  };
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) const noexcept {
    coroutine.promise().parent = waiting;
    return coroutine;
  }
  void await_resume() const noexcept { coroutine.destroy(); }
  std::coroutine_handle<promise_type> coroutine;
};
[[gnu::noinline]] Bare bare_child() { co_return; }
Bare bare_loop() {
  for (int i = 0; i < 2'000'000; ++i) co_await bare_child();
}
int symmetric_transfer_is_a_tail_call() {
  const Bare loop = bare_loop();
  loop.coroutine.resume();
  const bool done = loop.coroutine.done();
  loop.coroutine.destroy();
  return done ? kWorks : kWrong;
}

struct ThrowsOnReturnObject {
  struct promise_type {
    ThrowsOnReturnObject get_return_object() { throw std::runtime_error("no object"); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept {}
    LifetimeTracked tracked;
  };
};
ThrowsOnReturnObject never_made(LifetimeTracked /*parameter*/) { co_return; }
int exception_while_it_is_made() {
  try {
    never_made(LifetimeTracked(1));
    return kWrong;
  } catch (const std::runtime_error&) {
  }
  if (LifetimeTracked::double_deaths() != 0 || LifetimeTracked::alive() < 0) return kDestroyedTwice;
  return LifetimeTracked::alive() == 0 ? kWorks : kNeverDestroyed;
}

// ---- running them ---------------------------------------------------------------------------------------------------

/// No shape waits for anything outside, so a reactor that is about to sleep has a coroutine that was lost.
class LostCoroutine final : public Poller {
 public:
  bool poll() noexcept override { return false; }
  bool prepare_to_block() noexcept override { ::_exit(kNeverEnds); }
  void after_block() noexcept override {}
};

int run_on_reactor(Task<int> (*shape)()) {
  {
    ReactorOptions options;
    options.io = IoEngineKind::epoll;
    options.idle.mode = IdleMode::block;
    LostCoroutine lost;
    Reactor reactor(options);
    reactor.add_poller(lost);
    const int result = reactor.run(shape());
    reactor.remove_poller(lost);
    if (result != 1) return kWrong;
  }
  if (LifetimeTracked::double_deaths() != 0 || LifetimeTracked::alive() < 0) return kDestroyedTwice;
  return LifetimeTracked::alive() == 0 ? kWorks : kNeverDestroyed;
}

/// What became of `function` in a process of its own; "works" if all is well.
template <typename Function>
std::string state_of(Function function) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return "not tried: fork failed";
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    (void)!std::freopen("/dev/null", "w", stderr);  // a crash is expected news here
    ::alarm(20);
    ::_exit(function());
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return "not tried: waitpid failed";
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM) return "broken: never ends";
    return "broken: dies of signal " + std::to_string(WTERMSIG(status));
  }
  switch (WEXITSTATUS(status)) {
    case kWorks: return "works";
    case kWrong: return "broken: wrong result";
    case kDestroyedTwice: return "broken: something is destroyed twice";
    case kNeverDestroyed: return "broken: something is never destroyed";
    case kNeverEnds: return "broken: never ends";
    default: return "broken: exit code " + std::to_string(WEXITSTATUS(status));
  }
}

struct Shape {
  const char* name;
  Task<int> (*run)();
};

TEST(CoroutineProbe, WhatWeftReliesOnWorks) {
  const Shape shapes[] = {
      {"an argument that was named first", &named_argument},
      {"a task that was named first", &named_task},
      {"an operation that lives in the caller's frame", &operation_in_the_frame},
      {"co_await as a statement, and after co_return", &statement_and_return},
      {"co_await in the body of a loop", &in_a_loop},
      {"co_await in a try block that throws", &in_a_try_block},
      {"a coroutine lambda without captures", &captureless_lambda},
      {"a binding of a value that was named first", &named_before_binding},
      {"an aggregate that was named first", &aggregate_named_first},
      {"a temporary of a class with constructors", &class_temporary},
      {"a const reference to a temporary", &const_reference_to_a_temporary},
  };
  for (const Shape& shape : shapes) {
    const std::string state = state_of([&shape] { return run_on_reactor(shape.run); });
    std::printf("probe: relied on: %-52s %s\n", shape.name, state.c_str());
    EXPECT_EQ(state, "works") << shape.name;
  }
}

TEST(CoroutineProbe, TellsTheStateOfWhatTheRulesForbid) {
  const Shape shapes[] = {
      {"an aggregate temporary as argument", &aggregate_temporary},
      {"empty braces for an aggregate argument", &empty_braces},
      {"a coroutine lambda with captures, awaited at once", &lambda_with_captures},
      {"co_await in the head of switch", &switch_head},
      {"co_await in the head of if", &if_head},
      {"co_await in the head of if, with a temporary", &if_head_with_a_temporary},
      {"co_await in the head of while", &while_head},
      {"co_await in the head of a range-based for", &range_for_head},
      {"co_await beside && and ||", &and_or},
      {"co_await in ?:", &conditional_operator},
      {"co_await inside an argument", &as_an_argument},
      {"a structured binding straight from co_await", &binding_straight_from_await},
      {"a local that is aligned to 64", &over_aligned_local},
  };
  for (const Shape& shape : shapes) {
    const std::string state = state_of([&shape] { return run_on_reactor(shape.run); });
    std::printf("probe: forbidden: %-52s %s\n", shape.name, state.c_str());
  }
  std::printf("probe: property:  %-52s %s\n", "symmetric transfer is a tail call in this build",
              state_of(&symmetric_transfer_is_a_tail_call).c_str());
  std::printf("probe: property:  %-52s %s\n", "an exception while a coroutine is made leaks nothing",
              state_of(&exception_while_it_is_made).c_str());
}

}  // namespace
}  // namespace weft
