// Coroutine shapes that some compilers reject or die of; rejected_shapes.sh compiles them one by one and tells.
// SHAPE 0 is the control and must compile everywhere.
#include <coroutine>
#include <initializer_list>
#include <string>

#include "weft/runtime/task.hpp"

namespace {

weft::Task<int> sum(std::initializer_list<int> values) {
  int total = 0;
  for (const int value : values) total += value;
  co_return total;
}
weft::Task<int> length(std::initializer_list<std::string> values) { co_return static_cast<int>(values.size()); }
weft::Task<int> number(int value) { co_return value; }

#if SHAPE == 0
weft::Task<int> shape() {
  const std::initializer_list<int> values = {1, 2, 3};
  const int total = co_await sum(values);
  co_return total;
}
#elif SHAPE == 1
weft::Task<int> shape() {
  const int total = co_await sum({1, 2, 3});
  co_return total;
}
#elif SHAPE == 2
weft::Task<int> shape() {
  const int total = co_await length({std::string("a"), std::string("b")});
  co_return total;
}
#elif SHAPE == 3
weft::Task<int> shape() {
  const int total = __extension__({
    const int value = co_await number(1);
    value + 1;
  });
  co_return total;
}
#elif SHAPE == 4
struct Empty {
  Empty() = default;
};
Empty make_empty() { return Empty(); }
struct Holder {
  Holder() : empty(make_empty()) {}
  [[no_unique_address]] Empty empty;
  int value = 1;
};
weft::Task<int> shape() {
  const Holder holder;
  const int total = co_await number(holder.value);
  co_return total;
}
#endif

}  // namespace

int main() {
  const weft::Task<int> unused = shape();
  const weft::Task<int> others[] = {sum({}), length({}), number(0)};
  return unused && others[0] ? 0 : 1;
}
