// A program that wants the coroutines and nothing above them.
#include <weft/runtime/reactor.hpp>
#include <weft/runtime/sleep.hpp>

#include <chrono>

weft::Task<int> answer() {
  co_await weft::sleep_for(std::chrono::microseconds(1));
  co_return 42;
}

int main() {
  weft::Reactor reactor;
  return reactor.run(answer()) == 42 ? 0 : 1;
}
