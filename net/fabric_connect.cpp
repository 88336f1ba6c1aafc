// Connections are made on first use. Of two ranks the higher one connects and the lower one accepts, so that two that
// start at once do not meet halfway; the lower one asks through the store when it is first.
#include <string>
#include <string_view>

#include "weft/net/fabric.hpp"
#include "weft/net/shm/shm_address.hpp"
#include "weft/runtime/log.hpp"

namespace weft::net {
namespace {

/// One "name=address" a line; nothing where the rank has no such transport.
std::string_view address_in(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=') {
      return line.substr(name.size() + 1);
    }
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  return {};
}

}  // namespace

std::string Fabric::own_addresses() const {
  std::string lines;
  for (const Link& link : links_) lines.append(link.name).append("=").append(link.transport->address()).append("\n");
  return lines;
}

void Fabric::request_connection(std::int32_t peer) noexcept {
  if (rank_ > peer) {
    start_connecting(peer);
  } else {
    store_.request_connection(peer);
  }
}

void Fabric::on_connect_request(std::int32_t from) noexcept {
  if (from >= 0 && from < rank_) start_connecting(from);
}

void Fabric::start_connecting(std::int32_t peer) noexcept {
  const auto index = static_cast<std::size_t>(peer);
  if (connecting_[index] || leaving_ || nursery_ == nullptr) return;
  connecting_[index] = true;
  nursery_->start(connect_or_report(peer));
}

Task<void> Fabric::connect_or_report(std::int32_t peer) {
  std::string failure;
  Outcome outcome;
  try {
    co_await connect_to(peer);
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    failure = error.what();
    outcome = Outcome{Errc::peer_lost, peer, error.native()};
  }
  if (!outcome.ok()) messenger_.peer_ended(peer, PeerState::lost, outcome, "it cannot be reached: " + failure);
}

Task<void> Fabric::connect_to(std::int32_t peer) {
  const std::vector<std::byte> value = co_await store_.get("address/" + std::to_string(peer));
  const std::string lines(reinterpret_cast<const char*>(value.data()), value.size());
  std::string refusals;
  for (const Link& link : links_) {
    const std::string address(address_in(lines, link.name));
    std::string reason;
    if (address.empty()) reason = "the peer has none";
    if (reason.empty() && link.name == "shm") reason = shm_unreachable_reason(link.transport->address(), address);
    if (reason.empty()) {
      try {
        co_await link.transport->connect(peer, address);
        co_return;
      } catch (const Error& error) {
        if (error.code() == Errc::cancelled || error.code() == Errc::unauthorized) throw;
        reason = error.what();
      }
    }
    log(LogLevel::info, "rank " + std::to_string(rank_) + ": no " + link.name + " to rank " + std::to_string(peer) +
                            ": " + reason);
    refusals.append(refusals.empty() ? "" : "; ").append(link.name).append(": ").append(reason);
  }
  throw Error(Errc::unreachable, "connect", refusals.empty() ? "no transport is allowed" : refusals, peer);
}

}  // namespace weft::net
