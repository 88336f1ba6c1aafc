#include "progress.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace bench {

Progress Progress::on_terminal() {
  Progress progress;
  if (::isatty(STDERR_FILENO) != 0) {
    progress.terminal_.reset(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  } else if (const char* const name = std::getenv(kTerminalVariable); name != nullptr && name[0] == '/') {
    progress.terminal_.reset(::open(name, O_WRONLY | O_NOCTTY | O_CLOEXEC));
    if (progress.terminal_ && ::isatty(progress.terminal_.get()) == 0) progress.terminal_.reset();
  }
  return progress;
}

void Progress::show(const std::string& text) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + kInterval;
  shown_ = true;
  write("\r\033[K" + text);
}

void Progress::clear() {
  if (!shown_) return;
  shown_ = false;
  write("\r\033[K");
}

void Progress::write(const std::string& text) const {
  // Ranks are not in the terminal's foreground group; under `stty tostop` a write would stop them.
  sigset_t stop;
  sigset_t previous;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &stop, &previous);
  [[maybe_unused]] const ssize_t written = ::write(terminal_.get(), text.data(), text.size());
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

}  // namespace bench
