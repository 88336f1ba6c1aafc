// One other rank, as the protocol sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/net/protocol/request.hpp"
#include "weft/net/transport/transport.hpp"

namespace weft::net {

enum class PeerState : std::uint8_t {
  unknown,     ///< nothing was sent yet, no connection
  connecting,  ///< a connection has been asked for
  connected,
  left,        ///< said goodbye, or its connection ended after one
  lost,        ///< died, or became unreachable
};

/// A packet of the protocol's own (CTS, FIN, credit, ...) that found no room.
struct ControlPacket {
  WireHeader header;
  CtsPayload cts;
};

struct Peer {
  PeerState state = PeerState::unknown;
  Transport* transport = nullptr;  ///< set while connected
  IntrusiveList<SendRequest, SendQueueTag> queue;  ///< sends that wait for the connection or for room, in order
  /// Control packets that wait for room; at most a few per live rendezvous operation.
  std::vector<ControlPacket> control;
  std::size_t control_sent = 0;    ///< how many at the front of `control` have gone
  std::size_t window_bytes = 0;    ///< eager bytes that may still be sent before credit comes back
  std::size_t owed_bytes = 0;      ///< eager bytes consumed here and not yet given back
  Outcome end;                     ///< why operations that need this peer fail, once it has left or is lost
  std::string cause;               ///< the same in words
};

}  // namespace weft::net
