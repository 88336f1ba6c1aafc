#include "net/bootstrap/store_world.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace weft::net {
namespace {

Task<void> take_part(Nursery& nursery, StoreRank* self) {
  if (self->server != nullptr) nursery.start(self->server->serve());
  co_await self->client->start(nursery);
  co_await self->body(*self);
  if (self->say_goodbye) {
    co_await self->client->goodbye(0, kNoRank);
  } else {
    self->client->close();
  }
}

Task<void> rank_main(StoreRank* self) {
  co_await with_nursery(&take_part, self);
}

}  // namespace

void StoreRank::on_rank_lost(std::int32_t lost, std::int32_t at_fault, std::string_view cause) noexcept {
  static_cast<void>(cause);
  static_cast<void>(at_fault);
  events.push_back("lost " + std::to_string(lost));
  news.set();
}

void StoreRank::on_rank_left(std::int32_t left, std::int32_t code, std::int32_t at_fault) noexcept {
  events.push_back("left " + std::to_string(left) + " code " + std::to_string(code) + " fault " +
                   std::to_string(at_fault));
  news.set();
}

void StoreRank::on_connect_request(std::int32_t from) noexcept {
  events.push_back("connect " + std::to_string(from));
  news.set();
}

void StoreRank::on_store_lost(std::string_view cause) noexcept {
  static_cast<void>(cause);
  events.push_back("store lost");
  news.set();
}

Task<void> StoreRank::until(std::string event) {
  while (std::find(events.begin(), events.end(), event) == events.end()) {
    news.reset();
    co_await news.wait();
  }
}

StoreWorld::StoreWorld(std::int32_t ranks, StoreRank::Body body, void* shared) : body_(body), shared_(shared) {
  listener_ = listen_tcp("127.0.0.1", 0);
  port_ = local_port(listener_.get());
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    add(rank, ranks);
}

StoreRank& StoreWorld::add(std::int32_t rank, std::int32_t world_size) {
  auto self = std::make_unique<StoreRank>();
  self->rank = rank;
  self->options.host = "127.0.0.1";
  self->options.port = port_;
  self->options.rank = rank;
  self->options.world_size = world_size;
  self->body = body_;
  self->shared = shared_;
  ranks_.push_back(std::move(self));
  return *ranks_.back();
}

void StoreWorld::open_late(std::function<void()> ready) {
  listener_.reset();
  ready_ = std::move(ready);
}

void StoreWorld::run() {
  std::vector<std::thread> threads;
  for (const auto& self : ranks_)
    threads.emplace_back([this, rank = self.get()] { run_rank(*rank); });
  for (std::thread& thread : threads)
    thread.join();
}

void StoreWorld::run_rank(StoreRank& self) {
  ReactorOptions options;
  options.io = io_;
  Reactor reactor(options);
  const bool hosts = &self == ranks_.front().get();
  if (hosts) {
    if (ready_) ready_();
    if (!listener_) listener_ = listen_tcp("127.0.0.1", port_);
    self.server = std::make_unique<StoreServer>(reactor, std::move(listener_), self.options.world_size, token_);
  } else if (before_each_) {
    before_each_();
  }
  self.client = std::make_unique<StoreClient>(reactor, self.options, token_, &self);
  try {
    reactor.run(rank_main(&self));
  } catch (const Error& error) {
    self.failure = error;
  }
  self.client->close();
  self.client.reset();
  if (self.server) self.strangers = self.server->strangers();
  self.server.reset();
}

}  // namespace weft::net
