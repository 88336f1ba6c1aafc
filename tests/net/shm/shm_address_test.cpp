// Goal: an address says whether its owner can be reached, and nothing else is taken for one.
#include "weft/net/shm/shm_address.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::net {
namespace {

TEST(ShmAddress, IsPrintableShortUniqueAndReadBack) {
  const ShmAddress address = make_shm_address();
  const std::string text = to_string(address);
  EXPECT_LE(text.size(), 200U);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; }));
  ShmAddress read;
  ASSERT_TRUE(parse_shm_address(text, read));
  EXPECT_EQ(read.boot_id, address.boot_id);
  EXPECT_EQ(read.network_namespace, address.network_namespace);
  EXPECT_EQ(read.socket_name, address.socket_name);
  EXPECT_NE(make_shm_address().socket_name, address.socket_name);
}

TEST(ShmAddress, MalformedTextIsNoAddress) {
  ShmAddress address;
  const std::string good = to_string(make_shm_address());
  for (std::size_t length = 0; length < good.size(); ++length) {
    if (good.find("name=") + 5 < length) break;  // a shorter name is a name
    EXPECT_FALSE(parse_shm_address(good.substr(0, length), address)) << length;
  }
  for (const char* text : {"", "tcp://1.2.3.4:5", "weft-shm:2;boot=a;net=1;name=b", "weft-shm:1;net=1;boot=a;name=b",
                           "weft-shm:1;boot=;net=1;name=b", "weft-shm:1;boot=a;net=1;name=b;more=c",
                           "weft-shm:1;boot=a;net=1;name=b c", "weft-shm:1;boot=a;net=1;name=../x"}) {
    EXPECT_FALSE(parse_shm_address(text, address)) << text;
  }
  EXPECT_FALSE(parse_shm_address("weft-shm:1;boot=a;net=1;name=" + std::string(65, 'x'), address));
}

TEST(ShmAddress, ThereIsAReasonForEveryPeerThatCannotBeReached) {
  const ShmAddress here = make_shm_address();
  ShmAddress other = make_shm_address();
  EXPECT_EQ(shm_unreachable_reason(to_string(here), to_string(other)), "");
  other.boot_id = "elsewhere";
  EXPECT_NE(shm_unreachable_reason(to_string(here), to_string(other)).find("another machine"), std::string::npos);
  other = here;
  other.network_namespace = "1";
  EXPECT_NE(shm_unreachable_reason(to_string(here), to_string(other)).find("network namespace"), std::string::npos);
  EXPECT_NE(shm_unreachable_reason("", to_string(other)), "");
  EXPECT_NE(shm_unreachable_reason(to_string(here), ""), "");
  EXPECT_NE(shm_unreachable_reason(to_string(here), "nonsense"), "");
}

}  // namespace
}  // namespace weft::net
