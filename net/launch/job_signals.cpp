#include "weft/net/launch/job_signals.hpp"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace weft::net::launch {

Result<JobSignals> JobSignals::block() {
  fill_standard_descriptors();
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2})
    ::sigaddset(&wanted, number);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaddset(&wanted, SIGHUP);

  Descriptor fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    return Error(Errc::exhausted, "signals", std::string("cannot make a signalfd: ") + std::strerror(errno), kNoRank,
                 errno);
  }
  sigset_t previous;
  ::pthread_sigmask(SIG_BLOCK, &wanted, &previous);
  return JobSignals(std::move(fd), previous);
}

JobSignals::~JobSignals() {
  if (fd_) ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

}  // namespace weft::net::launch
