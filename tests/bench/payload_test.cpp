// --check must find what is wrong: every byte of a payload counts, and no message passes for another one.
#include "payload.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace bench {
namespace {

TEST(Payload, WhatWasFilledInIsRight) {
  for (std::size_t size = 0; size < 40; ++size) {
    std::vector<std::byte> bytes(size);
    fill_payload(bytes, size);
    EXPECT_NO_THROW(check_payload(bytes, size)) << size;
  }
}

TEST(Payload, AnyWrongByteIsFound) {
  std::vector<std::byte> bytes(29);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    fill_payload(bytes, 3);
    bytes[at] ^= std::byte{1};
    EXPECT_THROW(check_payload(bytes, 3), std::runtime_error) << at;
  }
}

TEST(Payload, AnotherMessageIsFound) {
  std::vector<std::byte> bytes(8);
  fill_payload(bytes, 4);
  EXPECT_THROW(check_payload(bytes, 5), std::runtime_error);
}

TEST(Payload, AShiftIsFound) {
  std::vector<std::byte> bytes(64);
  fill_payload(bytes, 0);
  EXPECT_THROW(check_payload(std::span(bytes).subspan(8), 0), std::runtime_error);
}

TEST(Payload, AnotherLengthIsFound) {
  EXPECT_NO_THROW(check_length(8, 8));
  EXPECT_THROW(check_length(7, 8), std::runtime_error);
}

}  // namespace
}  // namespace bench
