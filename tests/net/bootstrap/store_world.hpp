// A small world for tests of the store: ranks as threads, each with a reactor and a store client, rank 0 with the
// server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/bootstrap/job_token.hpp"
#include "weft/net/bootstrap/store_client.hpp"
#include "weft/net/bootstrap/store_server.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/reactor.hpp"

namespace weft::net {

/// One rank as the body of a test sees it.
class StoreRank final : public StoreEvents {
 public:
  using Body = Task<void> (*)(StoreRank& self);

  std::int32_t rank = 0;
  StoreClientOptions options;
  Body body = nullptr;
  void* shared = nullptr;               ///< whatever the test's bodies share
  std::unique_ptr<StoreServer> server;  ///< rank 0, while it runs
  std::unique_ptr<StoreClient> client;  ///< while it runs
  std::optional<Error> failure;         ///< what start() or the body threw
  std::vector<std::string> events;      ///< "lost 2", "left 1 code 0 fault -1", "connect 3", "store lost"
  bool say_goodbye = true;
  Event news;                 ///< set by every event
  std::size_t strangers = 0;  ///< the server's count at the end

  void on_rank_lost(std::int32_t lost, std::int32_t at_fault, std::string_view cause) noexcept override;
  void on_rank_left(std::int32_t left, std::int32_t code, std::int32_t at_fault) noexcept override;
  void on_connect_request(std::int32_t from) noexcept override;
  void on_store_lost(std::string_view cause) noexcept override;

  /// Returns once `event` has been noted; later events wait for the next call.
  [[nodiscard]] Task<void> until(std::string event);
};

class StoreWorld {
 public:
  StoreWorld(std::int32_t ranks, StoreRank::Body body, void* shared = nullptr);

  [[nodiscard]] StoreRank& operator[](std::int32_t rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const JobToken& token() const { return token_; }
  /// One more process that takes part: for ranks that do not add up.
  StoreRank& add(std::int32_t rank, std::int32_t world_size);
  /// Rank 0 opens the listener itself, and only when `ready` returns.
  void open_late(std::function<void()> ready);
  /// Rank 0 starts to accept only when `ready` returns; the listener is open all the time.
  void accept_late(std::function<void()> ready) { ready_ = std::move(ready); }
  /// The io engine of every rank.
  void use(IoEngineKind io) { io_ = io; }
  /// Called by each thread right before it runs its rank.
  void before_each(std::function<void()> call) { before_each_ = std::move(call); }

  /// Runs all ranks to their end.
  void run();

 private:
  void run_rank(StoreRank& self);

  JobToken token_ = JobToken::random();
  StoreRank::Body body_;
  void* shared_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  IoEngineKind io_ = IoEngineKind::automatic;
  std::function<void()> ready_;
  std::function<void()> before_each_;
  std::vector<std::unique_ptr<StoreRank>> ranks_;
};

}  // namespace weft::net
