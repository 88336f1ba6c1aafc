// The secret that makes a connection part of this job and not of another one.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "weft/runtime/result.hpp"

namespace weft::net {

inline constexpr std::size_t kJobTokenBytes = 32;

/// 32 bytes that every rank of a job knows. No message ever shows them, and each copy is wiped when it dies.
/// There is no empty token. Thread: any.
class JobToken {
 public:
  /// Reads the form of WEFT_JOB_TOKEN: 64 hex digits, either case.
  /// Errors: Errc::invalid_argument, which tells the length and the place of a wrong character, never the text.
  [[nodiscard]] static Result<JobToken> from_hex(std::string_view digits);

  /// A fresh secret from the kernel's random numbers.
  [[nodiscard]] static JobToken random();

  /// The token of a job whose launcher hands out no secret: a keyed hash of text that all its ranks see alike
  /// (torchrun's run id, the master's address and port, the restart count). It keeps two jobs, and two lives of one
  /// job, apart that meet on a port by accident. It is no secret: whoever can guess the text can make the token.
  [[nodiscard]] static JobToken derived(std::string_view text);

  JobToken(const JobToken&) noexcept = default;
  JobToken& operator=(const JobToken&) noexcept = default;
  ~JobToken();

  /// For use as a key only.
  [[nodiscard]] std::span<const unsigned char, kJobTokenBytes> key() const noexcept { return bytes_; }

  /// Takes the same time wherever the tokens differ.
  friend bool operator==(const JobToken& a, const JobToken& b) noexcept;

 private:
  JobToken() noexcept = default;
  std::array<unsigned char, kJobTokenBytes> bytes_{};
};

}  // namespace weft::net
