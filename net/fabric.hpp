// Fabric: everything of one rank that talks to other ranks. It joins the job, opens transports, connects peers on first
// use, spreads the news of deaths, and leaves in order.
//
// The reactor drives it as one poller: flush what was staged, poll each transport, flush the answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/net/bootstrap/environment.hpp"
#include "weft/net/bootstrap/store_client.hpp"
#include "weft/net/communicator.hpp"
#include "weft/net/group.hpp"
#include "weft/net/protocol/messenger.hpp"
#include "weft/net/transport/loopback_transport.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/poller.hpp"

namespace weft::net {

/// See the top of the file. Pinned; outlives the nursery given to open(), and every communicator. Thread: the
/// reactor's.
class Fabric final : private Poller, private Connector, private StoreEvents {
 public:
  /// `rank` is one of the ranks that `job` says this process hosts; `store_port` is where the store listens.
  Fabric(Reactor& reactor, const JobEnvironment& job, std::int32_t rank, std::uint16_t store_port);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  ~Fabric();

  /// Joins the job: returns when all ranks have come and this one can be reached. What runs on does so in `nursery`,
  /// which the caller cancels after leave().
  /// Errors: those of StoreClient::start() and of the transports' constructors.
  [[nodiscard]] Task<void> open(Nursery& nursery);

  /// All ranks. Call it once, after open().
  [[nodiscard]] Communicator make_world();

  /// Leaves in order: returns when everything that was sent is delivered and every connected rank has ended too.
  /// A rank that still needs this one is told that it has left (Errc::peer_closed), and does not wait.
  [[nodiscard]] Task<void> finish();

  /// Leaves because of an error: tells the others why, as far as they can be told within kFarewellTimeout. Never
  /// throws.
  [[nodiscard]] Task<void> abandon(Errc code, std::int32_t at_fault);

  // For groups. -----------------------------------------------------------------------------------------------------

  void add_group(Group& group) noexcept { groups_.push_back(group); }
  /// A number for the two contexts of a new communicator that no group of this rank uses.
  [[nodiscard]] std::uint32_t next_context() const noexcept { return next_context_; }
  /// All members have agreed on `context`, which is at least next_context().
  void take_context(std::uint32_t context) noexcept { next_context_ = context + 2; }

  [[nodiscard]] Messenger& messenger() noexcept { return messenger_; }
  [[nodiscard]] Reactor& reactor() const noexcept { return reactor_; }
  /// "shm", "tcp", "self", or "" while not connected.
  [[nodiscard]] const char* transport_of(std::int32_t peer) const noexcept;

 private:
  /// A transport as the store and the choice between transports know it.
  struct Link {
    std::string name;
    std::unique_ptr<Transport> transport;
  };

  // fabric.cpp
  void open_transports();
  bool poll() noexcept override;
  bool prepare_to_block() noexcept override;
  void after_block() noexcept override;
  void flush() noexcept;

  // fabric_connect.cpp
  void request_connection(std::int32_t peer) noexcept override;
  void on_connect_request(std::int32_t from) noexcept override;
  void start_connecting(std::int32_t peer) noexcept;
  Task<void> connect_to(std::int32_t peer);
  Task<void> connect_or_report(std::int32_t peer);
  [[nodiscard]] std::string own_addresses() const;

  // fabric_failure.cpp
  void on_peer_ended(std::int32_t peer) noexcept override;
  void break_groups(std::int32_t peer) noexcept;
  Task<void> break_groups_later(std::int32_t peer);
  void on_withdrawing(std::int32_t peer, std::uint32_t slot) noexcept override;
  void on_early_collective(std::int32_t peer, const WireHeader& header, std::uint32_t note) noexcept override;
  void on_rank_lost(std::int32_t rank, std::int32_t at_fault, std::string_view cause) noexcept override;
  void on_rank_left(std::int32_t rank, std::int32_t code, std::int32_t at_fault) noexcept override;
  void on_store_lost(std::string_view cause) noexcept override;
  void end_soon(std::int32_t rank, PeerState how, Outcome outcome, std::string cause) noexcept;
  Task<void> end_later(std::int32_t rank, PeerState how, Outcome outcome, std::string cause);
  Task<void> await_withdrawal(std::int32_t peer, std::uint32_t slot);
  Task<void> drain_sends();

  Reactor& reactor_;
  const JobEnvironment& job_;
  std::int32_t rank_;
  StoreClient store_;
  Messenger messenger_;
  LoopbackTransport loopback_;
  std::vector<Link> links_;  ///< in the order of preference
  Nursery* nursery_ = nullptr;
  std::vector<bool> connecting_;  ///< by peer: this side has started to connect
  IntrusiveList<Group, Group> groups_;
  std::uint32_t next_context_ = 2;  ///< 0 and 1 are the world's
  std::size_t prepared_ = 0;        ///< transports that prepare_to_block() has armed
  Event peer_ended_;                ///< a peer has left or was lost since finish() last looked
  bool leaving_ = false;
};

}  // namespace weft::net
