#include "weft/net/launch/job_output.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace weft::net::launch {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;   // one full pipe
constexpr std::size_t kHighWater = std::size_t{256} << 10;  // waiting for one output; above it its streams pause
constexpr std::size_t kLowWater = kHighWater / 2;
// A dead rank's pipe holds at most what fits into it, but children that it left may go on writing.
constexpr std::size_t kDrainBytes = std::size_t{1} << 20;

}  // namespace

JobOutput::JobOutput(EventSet& events, int output_fd, int error_fd) : events_(events) {
  sinks_.emplace_back(output_fd);
  sinks_.emplace_back(error_fd);
}

std::optional<std::size_t> JobOutput::add(Descriptor pipe, std::string prefix, Target target) {
  const std::size_t index = streams_.size();
  if (!events_.add(pipe.get(), EPOLLIN, EventKind::rank_output, index)) return std::nullopt;
  streams_.push_back({std::move(pipe), OutputPrefixer(std::move(prefix)), target});
  ++open_streams_;
  return index;
}

void JobOutput::on_rank_output(std::size_t index) {
  Stream& stream = streams_[index];
  if (!stream.pipe || stream.paused) return;  // ended or paused earlier in this batch of events
  if (sinks_[stream.target].sink.pending_bytes() > kHighWater) {
    events_.remove(stream.pipe.get());
    stream.paused = true;
    ++paused_streams_;
    return;
  }
  read_once(stream);
  flush(stream.target);
}

void JobOutput::on_sink(std::size_t target) {
  flush(target);
}

void JobOutput::drain(std::size_t index) {
  Stream& stream = streams_[index];
  for (std::size_t bytes = 0; bytes < kDrainBytes && stream.pipe; bytes += kReadBytes) {
    if (!read_once(stream)) break;
  }
  flush(stream.target);
}

void JobOutput::finish() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    drain(i);
    if (streams_[i].pipe) end(streams_[i]);
  }
  for (std::size_t target = 0; target < sinks_.size(); ++target)
    flush(target);
}

void JobOutput::report(std::string_view text) {
  std::string& buffer = sinks_[standard_error].sink.buffer();
  buffer += text;
  buffer += '\n';
  flush(standard_error);
}

bool JobOutput::flushed() const noexcept {
  for (const Sink& entry : sinks_) {
    if (entry.sink.pending_bytes() != 0) return false;
  }
  return true;
}

bool JobOutput::read_once(Stream& stream) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = ::read(stream.pipe.get(), bytes.data(), bytes.size());
  if (count > 0) {
    stream.prefixer.feed({bytes.data(), static_cast<std::size_t>(count)}, sinks_[stream.target].sink.buffer());
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  end(stream);
  return false;
}

void JobOutput::end(Stream& stream) {
  stream.prefixer.finish(sinks_[stream.target].sink.buffer());
  if (stream.paused) {
    stream.paused = false;
    --paused_streams_;
  } else {
    events_.remove(stream.pipe.get());
  }
  stream.pipe.reset();
  --open_streams_;
}

void JobOutput::flush(std::size_t target) {
  Sink& entry = sinks_[target];
  const OutputSink::State state = entry.sink.flush();
  const bool wait = state == OutputSink::State::blocked;
  if (wait && !entry.waiting) {
    // Refused only for files, which never block.
    entry.waiting = events_.add(entry.sink.descriptor(), EPOLLOUT, EventKind::sink, target);
  } else if (!wait && entry.waiting) {
    events_.remove(entry.sink.descriptor());
    entry.waiting = false;
  }
  if (state == OutputSink::State::broken && error_ == 0) {
    error_ = entry.sink.error();
    broken_ = static_cast<Target>(target);
  }
  if (paused_streams_ != 0 && entry.sink.pending_bytes() < kLowWater) resume_paused(target);
}

void JobOutput::resume_paused(std::size_t target) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    if (!stream.paused || stream.target != target) continue;
    if (!events_.add(stream.pipe.get(), EPOLLIN, EventKind::rank_output, i)) continue;  // no memory: tried again later
    stream.paused = false;
    --paused_streams_;
  }
}

}  // namespace weft::net::launch
