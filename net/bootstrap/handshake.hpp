// How two ends of a fresh connection prove to each other that they belong to the same job, before any other byte
// counts.
//
//     client                                   server
//       | hello: magic, version, purpose, rank, nonce ->|
//       |<- hello: the same of the server               |
//       | proof: keyed hash over role and both hellos ->|
//       |<- proof, or a refusal                         |
//
// The client proves first, so that a stranger who connects learns nothing he could test a guessed token on. Nonces are
// fresh on both sides: a recorded proof fits no other connection. The role stands in the hash: a proof sent back to its
// maker fits nothing. All messages have a fixed size; nothing a stranger sends makes the server allocate.
//
// handshake_messages.hpp has the messages and their checks on byte arrays alone; here are the two coroutines that move
// them.
#pragma once

#include <chrono>

#include "weft/net/bootstrap/handshake_messages.hpp"
#include "weft/net/bootstrap/job_token.hpp"
#include "weft/net/socket/socket.hpp"
#include "weft/runtime/clock.hpp"
#include "weft/runtime/task.hpp"

namespace weft::net {

/// How long a server waits for a stranger to prove himself. A proof costs two round trips and two hashes, well under
/// 1 s across continents; 3 s leave room for one lost packet (TCP's first retransmission comes after 1 s) and keep a
/// place in the queue of unproven connections from being held for longer than a user notices.
inline constexpr Duration kHandshakeTimeout = std::chrono::seconds(3);

/// Proves this end to the server behind `socket` and checks the server. Gives what the server said of itself.
///
/// It waits as long as the caller's deadline lets it: a server that is busy starting up is no failure.
/// Lifetime: `socket` and `token` are the caller's until the task is done. After an error close the socket.
/// Errors: unauthorized (the tokens differ), protocol (no Weft, another version, another purpose), peer_closed,
/// peer_lost, io, timed_out, cancelled; each names the peer's address.
[[nodiscard]] Task<PeerHello> handshake_as_client(Socket& socket, const JobToken& token, PeerHello mine);

/// The other half. Ends with timed_out after kHandshakeTimeout whatever the caller's deadline. Errors: as above.
[[nodiscard]] Task<PeerHello> handshake_as_server(Socket& socket, const JobToken& token, PeerHello mine);

}  // namespace weft::net
