// SendRequest and RecvRequest: one message in progress, as the protocol sees it. They live in the awaiter that started
// them, in the user's coroutine frame, and stay there until on_request_done().
//
//   SendRequest                                         RecvRequest
//   idle -> queued -> done           (eager)            idle -> posted -> done                  (eager)
//        -> queued -> offered -> done (RTS; FIN ends)                  -> reading -> done       (RTS, get, FIN)
//                     offered -> streaming -> done (CTS; data)         -> receiving -> done     (RTS, CTS, data)
//                     offered -> withdrawing -> done or offered's ways (cancel: rts_cancel, rts_gone)
//
// Until `offered` a send can be taken back at once; after it, only when the receiver confirms that it has not matched.
// A receive can be taken back while it is posted; once matched it ends with its value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/net/match/posted_receive.hpp"
#include "weft/net/transport/transport.hpp"
#include "weft/runtime/error.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft::net {

/// Who waits for a request: an awaiter, for one request or several.
class RequestOwner {
 public:
  /// The request is done and forgotten by the protocol. May run inside start_send() or start_recv().
  virtual void on_request_done() noexcept = 0;

 protected:
  ~RequestOwner() = default;
};

/// Tag of the list of sends that wait for room towards one peer.
struct SendQueueTag;

struct SendRequest : ListHook<SendQueueTag> {
  enum class State : std::uint8_t { idle, queued, offered, withdrawing, streaming, done };

  SendRequest(RequestOwner& request_owner, std::int32_t to, std::uint32_t in_context, std::uint64_t with_tag,
              std::span<const std::byte> bytes) noexcept
      : owner(request_owner), peer(to), context(in_context), tag(with_tag), payload(bytes) {}
  ~SendRequest() {
    WEFT_ASSERT(state == State::idle || state == State::done,
                "a send was destroyed while the transport may still read its buffer");
  }

  RequestOwner& owner;
  std::int32_t peer;  ///< rank in the world
  std::uint32_t context;
  std::uint64_t tag;
  std::span<const std::byte> payload;
  std::uint32_t note = 0;  ///< 32 bits that travel beside the tag and are not matched

  State state = State::idle;
  std::uint32_t slot = 0;     ///< name on the wire from `offered` on
  Outcome outcome;            ///< valid when done
  Outcome withdraw_outcome;   ///< how it ends if the receiver lets it go
  BulkSend bulk;
};

struct RecvRequest : PostedReceive {
  enum class State : std::uint8_t { idle, posted, reading, receiving, done };

  RecvRequest(RequestOwner& request_owner, const MatchPattern& wanted, std::span<std::byte> into) noexcept
      : PostedReceive(wanted), owner(request_owner), buffer(into) {}
  ~RecvRequest() {
    WEFT_ASSERT(state == State::idle || state == State::done,
                "a receive was destroyed while the transport may still write to its buffer");
  }

  RequestOwner& owner;
  std::span<std::byte> buffer;

  State state = State::idle;
  Outcome outcome;                  ///< valid when done; truncated leaves `length` at the message's true length
  std::int32_t source = kNoRank;    ///< of the matched message: rank in the world
  std::uint64_t tag = 0;            ///< of the matched message
  std::size_t length = 0;           ///< of the matched message
  std::uint32_t note = 0;           ///< of the matched message
  std::uint32_t sender_slot = 0;    ///< the sender's name, for FIN and CTS
  std::uint32_t slot = 0;           ///< our name on the wire while `receiving`
  std::size_t received_bytes = 0;   ///< while `receiving`
  GetRequest get;                   ///< while `reading`
};

}  // namespace weft::net
