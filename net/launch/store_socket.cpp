#include "weft/net/launch/store_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace weft::net::launch {
namespace {

constexpr int kBacklog = 4096;  // every rank of the largest job at once; the kernel cuts it to net.core.somaxconn

Error failed(std::uint16_t port, int error_number) {
  const std::string operation = "MASTER_PORT " + std::to_string(port);
  if (error_number == EADDRINUSE) {
    return {Errc::address_in_use, operation,
            "the port on 127.0.0.1 is in use by another program; unset MASTER_PORT to let the system choose", kNoRank,
            error_number};
  }
  return {errc_from_errno(error_number), operation,
          std::string("cannot listen on 127.0.0.1: ") + std::strerror(error_number), kNoRank, error_number};
}

}  // namespace

Result<StoreSocket> open_store_socket(std::uint16_t port) {
  StoreSocket store;
  store.listener = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int fd = store.listener.get();
  if (fd < 0) return failed(port, errno);
  // Connections of an earlier job in TIME_WAIT do not block the port; a listener of somebody else still does.
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);

  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, generic, length) != 0 || ::listen(fd, kBacklog) != 0 || ::getsockname(fd, generic, &length) != 0) {
    return failed(port, errno);
  }
  store.port = ntohs(address.sin_port);
  return store;
}

}  // namespace weft::net::launch
