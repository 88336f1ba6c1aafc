#include "weft/net/bootstrap/store_listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "weft/net/socket/socket.hpp"
#include "weft/runtime/error.hpp"

namespace weft::net {
namespace {

[[noreturn]] void refuse(int fd, const char* reason, int native) {
  throw Error(Errc::bad_environment, "WEFT_STORE_FD",
              "descriptor " + std::to_string(fd) + " is " + reason + "; weftrun hands over a listening TCP socket",
              kNoRank, native);
}

[[nodiscard]] int socket_option(int fd, int option) {
  int value = 0;
  socklen_t length = sizeof value;
  if (::getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0) return value;
  if (errno == EBADF) refuse(fd, "not open", errno);
  refuse(fd, "not a socket", errno);
}

}  // namespace

UniqueFd adopt_store_listener(int fd) {
  const int type = socket_option(fd, SO_TYPE);
  const int domain = socket_option(fd, SO_DOMAIN);
  if (type != SOCK_STREAM || (domain != AF_INET && domain != AF_INET6)) refuse(fd, "not a TCP socket", 0);
  if (socket_option(fd, SO_ACCEPTCONN) == 0) refuse(fd, "not listening", 0);
  // From here on it is ours, and no program that we start should hold the port.
  UniqueFd owned(fd);
  const int flags = ::fcntl(fd, F_GETFD);
  if (flags < 0 || ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0) refuse(fd, "not usable", errno);
  return owned;
}

UniqueFd open_store_listener(const JobEnvironment& job) {
  if (job.store_fd >= 0) return adopt_store_listener(job.store_fd);
  return listen_tcp(job.master_address, job.master_port);
}

}  // namespace weft::net
