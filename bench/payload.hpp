// Bytes that tell where they belong, for --check: a message that is lost, doubled, cut, shifted or mixed up differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bench {

/// Fills `bytes` with what belongs to `seed`.
void fill_payload(std::span<std::byte> bytes, std::uint64_t seed) noexcept;

/// Errors: throws std::runtime_error that names the place when `bytes` is not what fill_payload() made.
void check_payload(std::span<const std::byte> bytes, std::uint64_t seed);

/// Errors: throws std::runtime_error when a message has another length.
void check_length(std::size_t length, std::size_t expected);

}  // namespace bench
