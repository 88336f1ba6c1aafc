#include "weft/net/launch/output_prefixer.hpp"

#include <algorithm>
#include <utility>

namespace weft::net::launch {

OutputPrefixer::OutputPrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

void OutputPrefixer::emit(std::string_view text, bool cut, std::string& out) {
  out += prefix_;
  out += line_;
  out += text;
  line_.clear();
  if (cut && !prefix_.empty()) out += '\n';
}

void OutputPrefixer::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::size_t room = kMaxLineBytes - line_.size();
    const std::string_view window = bytes.substr(0, std::min(room, bytes.size()));
    const std::size_t newline = window.find('\n');
    if (newline != std::string_view::npos) {
      emit(window.substr(0, newline + 1), false, out);
      bytes.remove_prefix(newline + 1);
      continue;
    }
    if (window.size() == room) {
      emit(window, true, out);
    } else {
      line_ += window;
    }
    bytes.remove_prefix(window.size());
  }
}

void OutputPrefixer::finish(std::string& out) {
  if (!line_.empty()) emit({}, true, out);
}

}  // namespace weft::net::launch
