// What the store's clients and its server say to each other once both have proven the job's token.
//
// A frame is: u32 length of what follows | u8 kind | fields. Numbers are little endian; text is u16 length and bytes, a
// value u32 length and bytes, a list u32 count and elements. The decoder takes nothing on trust: every length is
// checked against what is there, and a frame must be used up exactly.
//
// The structs hold views: decoded, into the buffer that was decoded; to be encoded, into the caller's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/runtime/error.hpp"

namespace weft::net::store {

inline constexpr std::size_t kMaxValueBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxKeyBytes = 512;
/// One value with its key and numbers.
inline constexpr std::size_t kMaxFrameBytes = kMaxValueBytes + 1024;
inline constexpr std::size_t kLengthBytes = 4;
/// What a client may send before the server has welcomed it.
inline constexpr std::size_t kMaxJoinBytes = 16;

using Bytes = std::span<const std::byte>;

/// The byte after the length. Client to server below 64, server to client from 64 on.
enum class FrameKind : std::uint8_t {
  join = 1,
  set,
  get,
  wait,
  add,
  barrier,
  withdraw,
  goodbye,
  connect_to,
  welcome = 64,
  refused,
  done,
  value,
  counter,
  failed,
  withdrawn,
  rank_lost,
  rank_left,
  connect_request,
  job_failed,
  farewell,
};

/// First frame of a client.
struct Join {
  static constexpr FrameKind kKind = FrameKind::join;
  std::int32_t rank = kNoRank;
  std::int32_t world_size = 0;
  bool fields(auto&& f) { return f(rank) && f(world_size); }
};
/// Requests carry an id that the answer repeats. Set is answered by Done.
struct Set {
  static constexpr FrameKind kKind = FrameKind::set;
  std::uint32_t id = 0;
  std::string_view key;
  Bytes value;
  bool fields(auto&& f) { return f(id) && f(key) && f(value); }
};
/// Answered by Value as soon as the key exists.
struct Get {
  static constexpr FrameKind kKind = FrameKind::get;
  std::uint32_t id = 0;
  std::string_view key;
  bool fields(auto&& f) { return f(id) && f(key); }
};
/// Answered by Done as soon as all keys exist.
struct WaitAll {
  static constexpr FrameKind kKind = FrameKind::wait;
  std::uint32_t id = 0;
  std::vector<std::string_view> keys;
  bool fields(auto&& f) { return f(id) && f(keys); }
};
/// Answered by Counter.
struct Add {
  static constexpr FrameKind kKind = FrameKind::add;
  std::uint32_t id = 0;
  std::string_view key;
  std::int64_t delta = 0;
  bool fields(auto&& f) { return f(id) && f(key) && f(delta); }
};
/// Answered by Done when every rank of the world has entered.
struct Barrier {
  static constexpr FrameKind kKind = FrameKind::barrier;
  std::uint32_t id = 0;
  std::string_view name;
  bool fields(auto&& f) { return f(id) && f(name); }
};
/// The client no longer wants the answer to `id`. Answered by Withdrawn unless the answer has been sent.
struct Withdraw {
  static constexpr FrameKind kKind = FrameKind::withdraw;
  std::uint32_t id = 0;
  bool fields(auto&& f) { return f(id); }
};
/// The rank leaves in order; answered by Farewell. `at_fault` is the rank whose failure made it leave, or kNoRank.
struct Goodbye {
  static constexpr FrameKind kKind = FrameKind::goodbye;
  std::int32_t code = 0;
  std::int32_t at_fault = kNoRank;
  bool fields(auto&& f) { return f(code) && f(at_fault); }
};
/// Passed on to `rank` as ConnectRequest.
struct ConnectTo {
  static constexpr FrameKind kKind = FrameKind::connect_to;
  std::int32_t rank = kNoRank;
  bool fields(auto&& f) { return f(rank); }
};

/// The client's Join was accepted.
struct Welcome {
  static constexpr FrameKind kKind = FrameKind::welcome;
  bool fields(auto&&) { return true; }
};
/// The client's Join was not accepted; the connection ends.
struct Refused {
  static constexpr FrameKind kKind = FrameKind::refused;
  Errc code = Errc::ok;
  std::string_view text;
  bool fields(auto&& f) { return f(code) && f(text); }
};
struct Done {
  static constexpr FrameKind kKind = FrameKind::done;
  std::uint32_t id = 0;
  bool fields(auto&& f) { return f(id); }
};
struct Value {
  static constexpr FrameKind kKind = FrameKind::value;
  std::uint32_t id = 0;
  Bytes value;
  bool fields(auto&& f) { return f(id) && f(value); }
};
struct Counter {
  static constexpr FrameKind kKind = FrameKind::counter;
  std::uint32_t id = 0;
  std::int64_t count = 0;
  bool fields(auto&& f) { return f(id) && f(count); }
};
struct Failed {
  static constexpr FrameKind kKind = FrameKind::failed;
  std::uint32_t id = 0;
  Errc code = Errc::ok;
  std::int32_t rank = kNoRank;
  std::string_view text;
  bool fields(auto&& f) { return f(id) && f(code) && f(rank) && f(text); }
};
/// What was still missing: places in the list of keys of a Get or WaitAll, or ranks of a Barrier.
struct Withdrawn {
  static constexpr FrameKind kKind = FrameKind::withdrawn;
  std::uint32_t id = 0;
  std::vector<std::uint32_t> missing;
  bool fields(auto&& f) { return f(id) && f(missing); }
};
struct RankLost {
  static constexpr FrameKind kKind = FrameKind::rank_lost;
  std::int32_t rank = kNoRank;
  std::string_view cause;
  bool fields(auto&& f) { return f(rank) && f(cause); }
};
struct RankLeft {
  static constexpr FrameKind kKind = FrameKind::rank_left;
  std::int32_t rank = kNoRank;
  std::int32_t code = 0;
  std::int32_t at_fault = kNoRank;
  bool fields(auto&& f) { return f(rank) && f(code) && f(at_fault); }
};
struct ConnectRequest {
  static constexpr FrameKind kKind = FrameKind::connect_request;
  std::int32_t from = kNoRank;
  bool fields(auto&& f) { return f(from); }
};
/// The ranks do not fit together; nothing that waits for all of them can succeed.
struct JobFailed {
  static constexpr FrameKind kKind = FrameKind::job_failed;
  Errc code = Errc::ok;
  std::string_view text;
  bool fields(auto&& f) { return f(code) && f(text); }
};
/// Last frame to a client that has said goodbye.
struct Farewell {
  static constexpr FrameKind kKind = FrameKind::farewell;
  bool fields(auto&&) { return true; }
};

using Frame = std::variant<Join, Set, Get, WaitAll, Add, Barrier, Withdraw, Goodbye, ConnectTo, Welcome, Refused, Done,
                           Value, Counter, Failed, Withdrawn, RankLost, RankLeft, ConnectRequest, JobFailed, Farewell>;

/// Reads one frame without its length. Nothing when the bytes are no frame. Views point into `bytes`.
/// Cost: memory in proportion to `bytes`, never to a number in them.
[[nodiscard]] std::optional<Frame> decode(Bytes bytes);

/// The frame with its length in front. Text beyond kMaxKeyBytes is cut (callers check keys first).
/// Precondition: it fits kMaxFrameBytes.
[[nodiscard]] std::vector<std::byte> encode(Frame frame);

/// Everything of a Value frame but the value itself, which must follow it on the wire: for large shared values.
[[nodiscard]] std::vector<std::byte> encode_value_head(std::uint32_t id, std::size_t value_bytes);

/// The length in front of a frame: nothing when it is 0 or beyond `limit`.
[[nodiscard]] std::optional<std::size_t> decode_length(std::span<const std::byte, kLengthBytes> bytes,
                                                       std::size_t limit) noexcept;

}  // namespace weft::net::store
