#include "weft/runtime/error.hpp"

#include <cerrno>
#include <cstring>

namespace weft {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return "ok";
    case Errc::cancelled: return "cancelled";
    case Errc::timed_out: return "timed out";
    case Errc::peer_lost: return "peer lost";
    case Errc::peer_closed: return "peer closed";
    case Errc::truncated: return "truncated";
    case Errc::mismatch: return "mismatch";
    case Errc::invalid_argument: return "invalid argument";
    case Errc::bad_environment: return "bad environment";
    case Errc::address_in_use: return "address in use";
    case Errc::unreachable: return "unreachable";
    case Errc::unauthorized: return "unauthorized";
    case Errc::protocol: return "protocol error";
    case Errc::unsupported: return "unsupported";
    case Errc::exhausted: return "resource exhausted";
    case Errc::closed: return "closed";
    case Errc::io: return "input/output error";
  }
  return "unknown error";
}

Errc errc_from_errno(int error_number) noexcept {
  switch (error_number) {
    case 0: return Errc::ok;
    case ECONNABORTED:
    case ECONNRESET:
    case ENETRESET:
    case EPIPE:
    case ESHUTDOWN:
    case ESRCH: return Errc::peer_lost;
    case EADDRINUSE: return Errc::address_in_use;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL: return Errc::unreachable;
    case ETIMEDOUT: return Errc::timed_out;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC: return Errc::exhausted;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT: return Errc::unsupported;
    case EINVAL: return Errc::invalid_argument;
    default: return Errc::io;
  }
}

Error::Error(Errc code, std::string_view operation, std::string_view reason, std::int32_t peer, std::int32_t native)
    : code_(code), peer_(peer), native_(native), operation_(operation) {
  if (!operation.empty()) text_.append(operation).append(": ");
  text_.append(reason);
  if (native != 0 && code != Errc::mismatch && code != Errc::protocol) {
    text_.append(" (").append(std::strerror(native)).append(")");
  }
}

Error::Error(Outcome outcome, std::string_view operation)
    : Error(outcome.code, operation,
            outcome.peer == kNoRank ? std::string(to_string(outcome.code))
                                    : std::string(to_string(outcome.code)) + ", rank " + std::to_string(outcome.peer),
            outcome.peer, outcome.native) {}

}  // namespace weft
