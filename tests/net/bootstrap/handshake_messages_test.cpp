// The handshake on byte arrays; handshake_test.cpp does it over sockets.
#include "weft/net/bootstrap/handshake_messages.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace weft::net {
namespace {

PeerHello hello_of(std::int32_t rank) {
  PeerHello hello{Purpose::tcp, rank};
  return hello;
}

TEST(HandshakeMessages, AHelloComesBackAsItWasMade) {
  for (const std::int32_t rank : {0, 1, 65535, -1, 2147483647}) {
    const HelloBytes bytes = make_hello(Role::client, hello_of(rank), fresh_nonce());
    const CheckedHello checked = check_hello(bytes, Role::client);
    ASSERT_EQ(checked.code, Errc::ok) << checked.reason;
    EXPECT_EQ(checked.hello.rank, rank);
    EXPECT_EQ(checked.hello.purpose, Purpose::tcp);
    EXPECT_EQ(checked.version, kHandshakeVersion);
  }
}

TEST(HandshakeMessages, TheLayoutOfAHelloIsFixed) {
  Nonce nonce{};
  nonce.fill(std::byte{0xab});
  const HelloBytes bytes = make_hello(Role::server, hello_of(0x01020304), nonce);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 8), "WEFTHELO");
  EXPECT_EQ(bytes[8], std::byte{kHandshakeVersion});
  EXPECT_EQ(bytes[9], std::byte{0});
  EXPECT_EQ(bytes[10], std::byte{2});
  EXPECT_EQ(bytes[11], std::byte{2});
  EXPECT_EQ(bytes[12], std::byte{4});
  EXPECT_EQ(bytes[15], std::byte{1});
  EXPECT_EQ(bytes[16], std::byte{0xab});
  EXPECT_EQ(bytes[47], std::byte{0xab});
}

TEST(HandshakeMessages, AHelloOfAnotherVersionTellsItsVersion) {
  HelloBytes bytes = make_hello(Role::client, hello_of(1), fresh_nonce());
  bytes[8] = std::byte{0x34};
  bytes[9] = std::byte{0x12};
  const CheckedHello checked = check_hello(bytes, Role::client);
  EXPECT_EQ(checked.code, Errc::protocol);
  EXPECT_EQ(checked.version, 0x1234);
}

TEST(HandshakeMessages, AHelloWithAWrongMagicRoleOrPurposeIsRefused) {
  const HelloBytes good = make_hello(Role::client, hello_of(1), fresh_nonce());
  for (std::size_t i = 0; i < kHelloMagicBytes; ++i) {
    HelloBytes bytes = good;
    bytes[i] ^= std::byte{0x20};
    EXPECT_EQ(check_hello(bytes, Role::client).code, Errc::protocol);
    EXPECT_FALSE(has_hello_magic(bytes));
  }
  EXPECT_EQ(check_hello(good, Role::server).code, Errc::protocol);
  for (const int purpose : {0, 4, 255}) {
    HelloBytes bytes = good;
    bytes[11] = static_cast<std::byte>(purpose);
    EXPECT_EQ(check_hello(bytes, Role::client).code, Errc::protocol);
  }
}

class HandshakeProof : public ::testing::Test {
 protected:
  JobToken token_ = JobToken::random();
  HelloBytes client_ = make_hello(Role::client, hello_of(3), fresh_nonce());
  HelloBytes server_ = make_hello(Role::server, hello_of(5), fresh_nonce());
};

TEST_F(HandshakeProof, IsAcceptedByTheSameTokenOnly) {
  const ProofBytes proof = make_proof(token_, Role::client, client_, server_);
  EXPECT_EQ(check_proof(proof, token_, Role::client, client_, server_), Errc::ok);
  EXPECT_EQ(check_proof(proof, JobToken::random(), Role::client, client_, server_), Errc::unauthorized);
}

TEST_F(HandshakeProof, OfOneRoleIsNoneOfTheOther) {
  const ProofBytes proof = make_proof(token_, Role::client, client_, server_);
  EXPECT_EQ(check_proof(proof, token_, Role::server, client_, server_), Errc::unauthorized);
}

TEST_F(HandshakeProof, CoversEveryByteOfBothHellos) {
  const ProofBytes proof = make_proof(token_, Role::client, client_, server_);
  for (std::size_t i = 0; i < kHelloBytes; ++i) {
    HelloBytes client = client_;
    HelloBytes server = server_;
    client[i] ^= std::byte{1};
    server[i] ^= std::byte{1};
    EXPECT_EQ(check_proof(proof, token_, Role::client, client, server_), Errc::unauthorized) << i;
    EXPECT_EQ(check_proof(proof, token_, Role::client, client_, server), Errc::unauthorized) << i;
  }
}

TEST_F(HandshakeProof, WithAnyBitTurnedIsRefused) {
  const ProofBytes good = make_proof(token_, Role::server, client_, server_);
  for (std::size_t bit = 0; bit < 8 * kProofBytes; ++bit) {
    ProofBytes proof = good;
    proof[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_NE(check_proof(proof, token_, Role::server, client_, server_), Errc::ok) << bit;
  }
}

TEST_F(HandshakeProof, ARefusalIsUnauthorized) {
  EXPECT_EQ(check_proof(make_refusal(), token_, Role::server, client_, server_), Errc::unauthorized);
}

TEST(HandshakeMessages, NoncesDiffer) {
  EXPECT_NE(fresh_nonce(), fresh_nonce());
}

}  // namespace
}  // namespace weft::net
