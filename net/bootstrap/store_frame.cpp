#include "weft/net/bootstrap/store_frame.hpp"

#include <concepts>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weft/runtime/assert.hpp"

namespace weft::net::store {
namespace {

/// Appends fields to a buffer.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}

  template <std::integral T>
  bool operator()(T number) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto bits = static_cast<std::uint64_t>(static_cast<Unsigned>(number));
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_.push_back(static_cast<std::byte>((bits >> (8 * i)) & 0xff));
    return true;
  }
  bool operator()(Errc code) { return (*this)(static_cast<std::uint8_t>(code)); }
  bool operator()(std::string_view text) {
    text = text.substr(0, kMaxKeyBytes);
    (*this)(static_cast<std::uint16_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return true;
  }
  bool operator()(Bytes value) {
    (*this)(static_cast<std::uint32_t>(value.size()));
    out_.insert(out_.end(), value.begin(), value.end());
    return true;
  }
  template <typename T>
  bool operator()(const std::vector<T>& list) {
    (*this)(static_cast<std::uint32_t>(list.size()));
    for (const T& element : list)
      (*this)(element);
    return true;
  }

 private:
  std::vector<std::byte>& out_;
};

/// Takes fields off the front of a buffer; false when they are not there.
class Reader {
 public:
  explicit Reader(Bytes in) : in_(in) {}

  [[nodiscard]] bool at_end() const noexcept { return in_.empty(); }

  template <std::integral T>
  bool operator()(T& number) {
    if (in_.size() < sizeof(T)) return false;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bits |= std::to_integer<std::uint64_t>(in_[i]) << (8 * i);
    number = static_cast<T>(static_cast<std::make_unsigned_t<T>>(bits));
    in_ = in_.subspan(sizeof(T));
    return true;
  }
  bool operator()(Errc& code) {
    std::uint8_t number = 0;
    if (!(*this)(number) || number > static_cast<std::uint8_t>(Errc::io)) return false;
    code = static_cast<Errc>(number);
    return true;
  }
  bool operator()(std::string_view& text) {
    std::uint16_t length = 0;
    if (!(*this)(length) || length > kMaxKeyBytes || length > in_.size()) return false;
    text = std::string_view(reinterpret_cast<const char*>(in_.data()), length);
    in_ = in_.subspan(length);
    return true;
  }
  bool operator()(Bytes& value) {
    std::uint32_t length = 0;
    if (!(*this)(length) || length > kMaxValueBytes || length > in_.size()) return false;
    value = in_.first(length);
    in_ = in_.subspan(length);
    return true;
  }
  bool operator()(std::vector<std::string_view>& list) { return read_list(list, sizeof(std::uint16_t)); }
  bool operator()(std::vector<std::uint32_t>& list) { return read_list(list, sizeof(std::uint32_t)); }

 private:
  template <typename T>
  bool read_list(std::vector<T>& list, std::size_t least_element_bytes) {
    std::uint32_t count = 0;
    // Every element takes room in the frame, so a count that lies is found before anything is reserved.
    if (!(*this)(count) || count > in_.size() / least_element_bytes) return false;
    list.resize(count);
    for (T& element : list) {
      if (!(*this)(element)) return false;
    }
    return true;
  }

  Bytes in_;
};

template <typename T>
[[nodiscard]] bool decode_as(std::uint8_t kind, Reader& reader, std::optional<Frame>& frame) {
  if (kind != static_cast<std::uint8_t>(T::kKind)) return false;
  T candidate;
  if (candidate.fields(reader) && reader.at_end()) frame = std::move(candidate);
  return true;
}

template <typename... Ts>
[[nodiscard]] std::optional<Frame> decode_any(std::uint8_t kind, Reader& reader, std::variant<Ts...>* /*list*/) {
  std::optional<Frame> frame;
  static_cast<void>((decode_as<Ts>(kind, reader, frame) || ...));
  return frame;
}

void put_length(std::vector<std::byte>& bytes, std::size_t length) {
  WEFT_ASSERT(length <= kMaxFrameBytes, "store: a frame is longer than its limit");
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    bytes[i] = static_cast<std::byte>((length >> (8 * i)) & 0xff);
}

}  // namespace

std::optional<Frame> decode(Bytes bytes) {
  Reader reader(bytes);
  std::uint8_t kind = 0;
  if (!reader(kind)) return std::nullopt;
  return decode_any(kind, reader, static_cast<Frame*>(nullptr));
}

std::vector<std::byte> encode(Frame frame) {
  std::vector<std::byte> bytes(kLengthBytes);
  std::visit(
      [&bytes](auto& body) {
        if constexpr (requires { body.value; }) bytes.reserve(bytes.size() + body.value.size() + kMaxKeyBytes + 16);
        Writer writer(bytes);
        writer(static_cast<std::uint8_t>(std::remove_reference_t<decltype(body)>::kKind));
        body.fields(writer);
      },
      frame);
  put_length(bytes, bytes.size() - kLengthBytes);
  return bytes;
}

std::vector<std::byte> encode_value_head(std::uint32_t id, std::size_t value_bytes) {
  Value head;
  head.id = id;
  std::vector<std::byte> bytes = encode(head);
  // The value's own length is the last field of the empty frame.
  const std::size_t at = bytes.size() - sizeof(std::uint32_t);
  for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i) {
    bytes[at + i] = static_cast<std::byte>((value_bytes >> (8 * i)) & 0xff);
  }
  put_length(bytes, bytes.size() - kLengthBytes + value_bytes);
  return bytes;
}

std::optional<std::size_t> decode_length(std::span<const std::byte, kLengthBytes> bytes, std::size_t limit) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::to_integer<std::size_t>(bytes[i]) << (8 * i);
  if (length == 0 || length > limit) return std::nullopt;
  return length;
}

}  // namespace weft::net::store
