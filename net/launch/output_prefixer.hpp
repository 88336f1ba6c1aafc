// Turns the bytes a rank writes into whole, labelled lines. Pure: bytes in, bytes out. A line is handed on only when it
// is complete, so that the lines of several ranks never mix; a line longer than kMaxLineBytes is cut, which bounds the
// memory a rank can make the launcher hold.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft::net::launch {

class OutputPrefixer {
 public:
  /// Longest part of a line that is held back. 64 KiB is the capacity of a Linux pipe.
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;

  /// `prefix` goes before every line, `[3] ` for example. An empty prefix means that the bytes come out exactly as they
  /// came in, still in whole lines where they fit.
  explicit OutputPrefixer(std::string prefix);

  /// Takes the next bytes of the stream, any values and any cut, and appends what may be shown to `out`.
  void feed(std::string_view bytes, std::string& out);

  /// The stream has ended: appends the unfinished line, if there is one. With a prefix it is closed by a newline, so
  /// that the next rank starts a line of its own. Feeding may go on afterwards with a new line.
  void finish(std::string& out);

  /// Bytes held back, below kMaxLineBytes.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return line_.size(); }

 private:
  void emit(std::string_view text, bool cut, std::string& out);

  std::string prefix_;
  std::string line_;  ///< the unfinished line, without its prefix; never holds a newline
};

}  // namespace weft::net::launch
