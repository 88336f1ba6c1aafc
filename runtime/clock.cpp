#include "weft/runtime/clock.hpp"

namespace weft {

Clock& steady_clock() noexcept {
  static SteadyClock clock;  // stateless: sharing it between threads shares nothing
  return clock;
}

}  // namespace weft
