// The one list of failure kinds, and the exception that carries one to the user. Below an awaiter code returns an
// Errc (or an Outcome); the awaiter turns it into an Error when it resumes the coroutine. Whoever detects a failure
// words it; everybody else passes it on.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace weft {

/// What went wrong. `to_string` gives the name that appears in messages.
enum class Errc : std::uint8_t {
  ok = 0,
  cancelled,         ///< the cancel scope around the operation was cancelled
  timed_out,         ///< a deadline passed
  peer_lost,         ///< the peer's process died or its connection broke
  peer_closed,       ///< the peer left in order while this operation still needed it
  truncated,         ///< a message is longer than the buffer of the receive that matched it
  mismatch,          ///< ranks disagree about a collective, or the world's shape
  invalid_argument,  ///< the caller's fault, found before anything was started
  bad_environment,   ///< a variable is missing, malformed or contradicts another
  address_in_use,    ///< a port is taken
  unreachable,       ///< a name does not resolve or no address answers
  unauthorized,      ///< the other side does not know the job's token
  protocol,          ///< bytes on the wire that no Weft of this version sends
  unsupported,       ///< this machine or transport cannot do it
  exhausted,         ///< a limit of the system: descriptors, memory, locked memory
  closed,            ///< the channel, reactor or communicator was closed here
  io,                ///< another system error; `native` is the errno
};

/// Thread: any. The result is a literal that lives for ever.
[[nodiscard]] std::string_view to_string(Errc code) noexcept;

/// The Errc that fits an errno of a socket or file call; `Errc::io` where none fits better.
[[nodiscard]] Errc errc_from_errno(int error_number) noexcept;

inline constexpr std::int32_t kNoRank = -1;

/// How an operation ended, below the awaiter: small enough to pass by value everywhere.
struct Outcome {
  Errc code = Errc::ok;
  std::int32_t peer = kNoRank;  ///< the rank at fault, in the world's numbering
  std::int32_t native = 0;      ///< errno or another layer's own code; 0 where there is none

  [[nodiscard]] constexpr bool ok() const noexcept { return code == Errc::ok; }
};

/// Every failure of the library that reaches a user.
///
/// what() reads `operation: reason`, names the peer where one is at fault, and says what to do where that is known.
class Error : public std::exception {
 public:
  /// `operation` is what the user asked for ("all_reduce#41"), `reason` a full clause with its remedy.
  Error(Errc code, std::string_view operation, std::string_view reason, std::int32_t peer = kNoRank,
        std::int32_t native = 0);

  /// Words an Outcome whose detector left no text.
  Error(Outcome outcome, std::string_view operation);

  [[nodiscard]] Errc code() const noexcept { return code_; }
  /// The rank at fault, in the world's numbering, or kNoRank.
  [[nodiscard]] std::int32_t peer() const noexcept { return peer_; }
  /// errno, ibv_wc_status or cudaError_t, as the operation says; 0 where there is none.
  [[nodiscard]] std::int32_t native() const noexcept { return native_; }
  [[nodiscard]] const std::string& operation() const noexcept { return operation_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  Errc code_;
  std::int32_t peer_;
  std::int32_t native_;
  std::string operation_;
  std::string text_;
};

}  // namespace weft
