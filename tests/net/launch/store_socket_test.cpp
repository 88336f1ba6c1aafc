#include "weft/net/launch/store_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

namespace weft::net::launch {
namespace {

TEST(StoreSocket, ListensOnAPortOfItsOwnAndIsClosedOnExec) {
  const auto store = open_store_socket(0);
  ASSERT_TRUE(store);
  EXPECT_NE(store->port, 0);
  int listening = 0;
  socklen_t length = sizeof listening;
  ASSERT_EQ(::getsockopt(store->listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &length), 0);
  EXPECT_EQ(listening, 1);
  EXPECT_NE(::fcntl(store->listener.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(StoreSocket, ABusyPortIsNamed) {
  const auto first = open_store_socket(0);
  ASSERT_TRUE(first);
  const auto second = open_store_socket(first->port);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.code(), Errc::address_in_use);
  EXPECT_NE(std::string(second.error().what()).find(std::to_string(first->port)), std::string::npos);
}

}  // namespace
}  // namespace weft::net::launch
