// Feeds arbitrary output in arbitrary pieces to the launcher's prefixer: without a prefix the bytes come out as they
// went in, with one every line has it and nothing else is added or lost.
//
// The first byte chooses the size of the pieces.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/net/launch/output_prefixer.hpp"
#include "weft/runtime/assert.hpp"

namespace {

using weft::net::launch::OutputPrefixer;

std::string through(OutputPrefixer prefixer, std::string_view text, std::size_t piece) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    prefixer.feed(text.substr(at, piece), out);
    WEFT_ASSERT(prefixer.held_bytes() < OutputPrefixer::kMaxLineBytes, "holds back more than it promises");
  }
  prefixer.finish(out);
  WEFT_ASSERT(prefixer.held_bytes() == 0, "holds something back at the end");
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] * std::size_t{17};
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);

  WEFT_ASSERT(through(OutputPrefixer(""), text, piece) == text, "bytes are changed without a prefix");

  // Shorter than a line may be, so nothing is cut: the text is the lines without their prefixes.
  const std::string_view prefix = "[3] ";
  std::string expected;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::size_t stop = end == std::string_view::npos ? text.size() : end;
    expected.append(prefix).append(text.substr(at, stop - at)).append("\n");
    at = stop + 1;
  }
  WEFT_ASSERT(through(OutputPrefixer(std::string(prefix)), text, piece) == expected, "lines are not the rank's lines");
  return 0;
}
