// Feeds arbitrary bytes to both sides of the handshake: what is accepted must be what this side would have written, and
// no bytes that the fuzzer can make may pass as a proof.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "weft/net/bootstrap/handshake_messages.hpp"
#include "weft/runtime/assert.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::net;
  static const JobToken token = JobToken::random();

  HelloBytes hello{};
  std::memcpy(hello.data(), data, std::min(size, hello.size()));
  for (const Role role : {Role::client, Role::server}) {
    const CheckedHello checked = check_hello(hello, role);
    WEFT_ASSERT(checked.code == Errc::ok || checked.code == Errc::protocol,
                "check_hello: an error it does not promise");
    if (checked.code != Errc::ok) {
      WEFT_ASSERT(!checked.reason.empty(), "check_hello: refused without a reason");
      continue;
    }
    Nonce nonce;
    std::copy(hello.end() - kNonceBytes, hello.end(), nonce.begin());
    WEFT_ASSERT(make_hello(role, checked.hello, nonce) == hello, "check_hello accepted what make_hello does not make");
  }
  ProofBytes proof{};
  std::memcpy(proof.data(), data, std::min(size, proof.size()));
  const Errc verdict = check_proof(proof, token, Role::client, hello, hello);
  WEFT_ASSERT(verdict == Errc::unauthorized || verdict == Errc::protocol, "check_proof: accepted a guess");
  return 0;
}
