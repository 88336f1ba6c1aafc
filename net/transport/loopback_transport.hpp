// A rank's way to itself: the reference implementation of the transport contract, in memory.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/net/transport/transport.hpp"

namespace weft::net {

/// Reaches one peer, this rank. Packets wait in a byte queue until the next poll(), so that a send never runs the code
/// of its own receive. Connected from the start. Thread: the rank's reactor.
class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(std::int32_t self, TransportSink& sink);

  [[nodiscard]] const TransportCapabilities& capabilities() const noexcept override;
  [[nodiscard]] std::string address() const override { return {}; }
  Task<void> serve() override;
  Task<void> connect(std::int32_t peer, std::string address) override;
  [[nodiscard]] bool try_send(std::int32_t peer, const WireHeader& header,
                              std::span<const std::byte> payload) noexcept override;
  [[nodiscard]] bool can_get(std::int32_t peer) const noexcept override;
  void get(GetRequest& request) noexcept override;
  void send_bulk(BulkSend& bulk) noexcept override;
  void flush() noexcept override {}
  bool poll() noexcept override;
  bool prepare_to_block() noexcept override { return sending_.empty() && gets_ == nullptr; }
  void after_block() noexcept override {}
  [[nodiscard]] bool drained() const noexcept override { return sending_.empty(); }
  void disconnect(std::int32_t /*peer*/) noexcept override {}

 private:
  std::int32_t self_;
  TransportSink& sink_;
  std::vector<std::byte> sending_;     ///< packets to be delivered by the next poll()
  std::vector<std::byte> delivering_;  ///< the ones that poll() is at
  GetRequest* gets_ = nullptr;
  bool refused_ = false;  ///< try_send() has returned false since the last on_writable()
};

}  // namespace weft::net
