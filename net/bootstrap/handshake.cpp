#include "weft/net/bootstrap/handshake.hpp"

#include <string>
#include <utility>

#include "weft/runtime/as_result.hpp"
#include "weft/runtime/deadline.hpp"

namespace weft::net {
namespace {

[[nodiscard]] std::string operation_with(const Socket& socket) {
  return "handshake with " + socket.peer();
}

/// Words what a failed read or write means at this point of the handshake.
[[noreturn]] void rethrow_worded(const Error& error, const Socket& socket, std::string_view waited_for) {
  std::string reason;
  switch (error.code()) {
    case Errc::peer_closed: reason = "the peer closed the connection before it sent its "; break;
    case Errc::peer_lost: reason = "the connection broke before the peer had sent its "; break;
    case Errc::timed_out: reason = "no time is left, still waiting for the peer's "; break;
    default: throw Error(error.code(), operation_with(socket), error.what(), kNoRank, error.native());
  }
  reason += waited_for;
  throw Error(error.code(), operation_with(socket), reason, kNoRank, error.native());
}

[[noreturn]] void throw_not_weft(const Socket& socket) {
  throw Error(Errc::protocol, operation_with(socket), "the peer does not speak Weft's protocol");
}

/// Throws unless `checked` is a hello of this version for this purpose.
void require_hello(const CheckedHello& checked, const Socket& socket, Purpose purpose) {
  if (checked.code != Errc::ok) {
    std::string reason(checked.reason);
    if (checked.version != 0 && checked.version != kHandshakeVersion) {
      reason += ": the peer speaks version " + std::to_string(checked.version) + ", this side version " +
                std::to_string(kHandshakeVersion) + "; install the same Weft on all hosts of a job";
    }
    throw Error(checked.code, operation_with(socket), reason);
  }
  if (checked.hello.purpose != purpose) {
    throw Error(Errc::protocol, operation_with(socket),
                std::string("the peer wants a ") + std::string(to_string(checked.hello.purpose)) +
                    " connection, this side has a " + std::string(to_string(purpose)) + " connection");
  }
}

/// Fills `hello`. The magic comes first, so that a stranger who speaks something else is turned away without a wait
/// for the rest.
Task<void> read_hello(Socket& socket, HelloBytes& hello) {
  try {
    co_await socket.read_exact(std::span(hello).first(kHelloMagicBytes));
    if (!has_hello_magic(hello)) throw_not_weft(socket);
    co_await socket.read_exact(std::span(hello).subspan(kHelloMagicBytes));
  } catch (const Error& error) {
    if (error.code() == Errc::protocol) throw;
    rethrow_worded(error, socket, "hello");
  }
}

Task<void> read_proof(Socket& socket, ProofBytes& proof) {
  try {
    co_await socket.read_exact(proof);
  } catch (const Error& error) {
    rethrow_worded(error, socket, "proof");
  }
}

Task<void> send(Socket& socket, std::span<const std::byte> bytes, std::string_view waited_for) {
  try {
    co_await socket.write_all(bytes);
  } catch (const Error& error) {
    rethrow_worded(error, socket, waited_for);
  }
}

Task<PeerHello> serve_handshake(Socket& socket, const JobToken& token, PeerHello mine) {
  HelloBytes client;
  ProofBytes proof;
  co_await read_hello(socket, client);
  const HelloBytes server = make_hello(Role::server, mine, fresh_nonce());
  // A client of another version or purpose gets the hello too: that is how it learns what it talks to.
  co_await send(socket, server, "proof");
  const CheckedHello checked = check_hello(client, Role::client);
  require_hello(checked, socket, mine.purpose);

  co_await read_proof(socket, proof);
  const Errc verdict = check_proof(proof, token, Role::client, client, server);
  if (verdict == Errc::protocol) throw_not_weft(socket);
  if (verdict != Errc::ok) {
    proof = make_refusal();
    // Whether the refusal arrives is the peer's concern; what happened here stays the same.
    Result<void> sent = co_await as_result(socket.write_all(proof));
    static_cast<void>(sent);
    throw Error(Errc::unauthorized, operation_with(socket), "the peer does not know this job's token");
  }
  proof = make_proof(token, Role::server, client, server);
  co_await send(socket, proof, "next message");
  co_return checked.hello;
}

}  // namespace

Task<PeerHello> handshake_as_client(Socket& socket, const JobToken& token, PeerHello mine) {
  HelloBytes server;
  ProofBytes proof;
  const HelloBytes client = make_hello(Role::client, mine, fresh_nonce());
  co_await send(socket, client, "hello");
  co_await read_hello(socket, server);
  const CheckedHello checked = check_hello(server, Role::server);
  require_hello(checked, socket, mine.purpose);

  proof = make_proof(token, Role::client, client, server);
  co_await send(socket, proof, "proof");
  co_await read_proof(socket, proof);
  const Errc verdict = check_proof(proof, token, Role::server, client, server);
  if (verdict == Errc::protocol) throw_not_weft(socket);
  if (verdict != Errc::ok) {
    throw Error(Errc::unauthorized, operation_with(socket),
                "the peer belongs to another job: its token is not this one (WEFT_JOB_TOKEN; without it MASTER_ADDR, "
                "MASTER_PORT and TORCHELASTIC_RUN_ID, which all ranks must spell alike)");
  }
  co_return checked.hello;
}

Task<PeerHello> handshake_as_server(Socket& socket, const JobToken& token, PeerHello mine) {
  Task<PeerHello> handshake = serve_handshake(socket, token, mine);
  PeerHello peer = co_await with_deadline(kHandshakeTimeout, std::move(handshake));
  co_return peer;
}

}  // namespace weft::net
