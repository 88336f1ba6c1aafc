// Brings what the ranks write to the launcher's outputs, line by line, with bounded memory: when an output takes no
// more, the pipes that feed it are left alone until it does, and the ranks wait in their write(2) as they would without
// a launcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/launch/descriptor.hpp"
#include "weft/net/launch/event_set.hpp"
#include "weft/net/launch/output_prefixer.hpp"
#include "weft/net/launch/output_sink.hpp"

namespace weft::net::launch {

class JobOutput {
 public:
  enum Target : std::uint8_t { standard_output = 0, standard_error = 1 };

  /// `events` must outlive this object; it gets EventKind::rank_output and EventKind::sink.
  JobOutput(EventSet& events, int output_fd, int error_fd);

  /// Starts to carry lines from `pipe`, the non-blocking read end of a pipe, to `target`. Returns the stream's index,
  /// or nothing when the kernel refuses, with errno.
  [[nodiscard]] std::optional<std::size_t> add(Descriptor pipe, std::string prefix, Target target);

  /// The answers to the two events.
  void on_rank_output(std::size_t stream);
  void on_sink(std::size_t target);

  /// Reads all that is in the pipe now, also where the output is slow; for the last words of a rank that has died.
  void drain(std::size_t stream);
  /// Drains every stream, shows unfinished lines and closes the pipes.
  void finish();

  /// One line of the launcher's own on standard error; `text` has no newline.
  void report(std::string_view text);

  /// True when every writer has closed its pipe.
  [[nodiscard]] bool streams_ended() const noexcept { return open_streams_ == 0; }
  /// True when nothing waits to be written.
  [[nodiscard]] bool flushed() const noexcept;
  /// errno of the first output that failed; 0 while both work.
  [[nodiscard]] int error() const noexcept { return error_; }
  /// Which one that was. Only where error() is not 0.
  [[nodiscard]] Target broken() const noexcept { return broken_; }

 private:
  struct Stream {
    Descriptor pipe;
    OutputPrefixer prefixer;
    Target target;
    bool paused = false;  ///< not in the event set: its output is full
  };
  struct Sink {
    explicit Sink(int fd) : sink(fd) {}
    OutputSink sink;
    bool waiting = false;  ///< in the event set
  };

  // One read; false when there was nothing more, or the stream has ended.
  bool read_once(Stream& stream);
  void end(Stream& stream);
  void flush(std::size_t target);
  void resume_paused(std::size_t target);

  EventSet& events_;
  std::vector<Stream> streams_;
  std::vector<Sink> sinks_;
  std::size_t open_streams_ = 0;
  std::size_t paused_streams_ = 0;
  int error_ = 0;
  Target broken_ = standard_output;
};

}  // namespace weft::net::launch
