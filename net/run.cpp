#include "weft/net/run.hpp"

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "weft/net/bootstrap/store_listener.hpp"
#include "weft/net/bootstrap/store_server.hpp"
#include "weft/net/fabric.hpp"
#include "weft/runtime/topology.hpp"

namespace weft {
namespace {

using net::BindChoice;
using net::Fabric;
using net::JobEnvironment;
using net::StoreServer;

/// The store of rank 0, and whether it has served everybody.
struct Store {
  Store(Reactor& reactor, UniqueFd listener, const JobEnvironment& job)
      : server(reactor, std::move(listener), job.world_size, job.token) {}
  StoreServer server;
  Event served;
};

Task<void> serve_store(Store* store) {
  co_await store->server.serve();
  store->served.set();
}

/// What ended a rank, and which other rank is to blame for it: one that has ended itself. A rank that this one
/// disagreed with, or has waited for in vain, may be well.
std::pair<Errc, std::int32_t> blame(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    const bool peer_ended = error.code() == Errc::peer_lost || error.code() == Errc::peer_closed;
    return {error.code(), peer_ended ? error.peer() : kNoRank};
  } catch (...) {
    return {Errc::io, kNoRank};
  }
}

Task<void> use_world(Fabric* fabric, const RankMain* main) {
  Communicator world = fabric->make_world();
  co_await (*main)(world);
  co_await fabric->finish();
}

Task<void> rank_body(Nursery& nursery, Fabric* fabric, Store* store, const RankMain* main) {
  std::exception_ptr failure;
  try {
    if (store != nullptr) nursery.start(serve_store(store));
    co_await fabric->open(nursery);
    co_await use_world(fabric, main);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure != nullptr) {
    const std::pair<Errc, std::int32_t> cause = blame(failure);
    co_await fabric->abandon(cause.first, cause.second);
  } else if (store != nullptr) {
    co_await store->served.wait();  // the others need the store until they have left
  }
  nursery.cancel();
  if (failure != nullptr) std::rethrow_exception(failure);
}

Task<void> rank_life(Reactor& reactor, const JobEnvironment* job, std::int32_t rank, std::uint16_t port, Store* store,
                     const RankMain* main) {
  Fabric fabric(reactor, *job, rank, port);
  co_await with_nursery(&rank_body, &fabric, store, main);
}

/// One rank on the calling thread, from the making of its reactor to its end.
void live(const JobEnvironment& job, std::int32_t rank, std::uint16_t port, UniqueFd listener, const RankMain& main) {
  const std::int32_t local_rank = job.local_rank + (rank - job.rank);
  const std::vector<unsigned> processors = available_processors();
  const auto index = static_cast<std::size_t>(local_rank);
  const bool fits = static_cast<std::size_t>(job.local_world_size) <= processors.size();
  if (job.bind == BindChoice::core && !fits) {
    throw Error(Errc::bad_environment, "WEFT_BIND",
                "core was asked for, but " + std::to_string(job.local_world_size) + " ranks share " +
                    std::to_string(processors.size()) + " processors; use none");
  }
  // A program started by hand is left where it is unless it asks.
  const bool started_by_hand = job.source == net::EnvironmentSource::none;
  ThreadBinding binding;
  if (job.bind == BindChoice::core || (job.bind == BindChoice::automatic && fits && !started_by_hand)) {
    const Outcome bound = binding.bind(processors[index]);
    if (!bound.ok()) {
      throw Error(bound.code, "bind", "cannot bind to processor " + std::to_string(processors[index]), kNoRank,
                  bound.native);
    }
  }
  ReactorOptions options;
  options.idle = IdlePolicy::for_host(job.idle, static_cast<unsigned>(job.local_world_size), available_cores());
  Reactor reactor(options);
  std::optional<Store> store;
  if (listener) store.emplace(reactor, std::move(listener), job);
  reactor.run(rank_life(reactor, &job, rank, port, store.has_value() ? &*store : nullptr, &main));
}

RankOutcome outcome_of(const JobEnvironment& job, std::int32_t rank, std::uint16_t port, UniqueFd listener,
                       const RankMain& main) {
  RankOutcome outcome;
  outcome.rank = rank;
  try {
    live(job, rank, port, std::move(listener), main);
  } catch (...) {
    outcome.failure = std::current_exception();
  }
  return outcome;
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_bad_use(Errc code) noexcept {
  return code == Errc::bad_environment || code == Errc::address_in_use || code == Errc::unreachable;
}

void report(std::string_view program, const std::string& who, const char* what) {
  const std::string line = std::string(base_name(program)) + ": " + who + what + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

std::vector<RankOutcome> run_job(const JobEnvironment& job, const RankMain& main) {
  UniqueFd listener;
  std::uint16_t port = job.master_port;
  if (job.world_size > 1 && job.rank == 0) {
    listener = net::open_store_listener(job);
    port = net::local_port(listener.get());
  }
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(job.ranks_here));
  if (job.ranks_here == 1) {
    outcomes[0] = outcome_of(job, job.rank, port, std::move(listener), main);
    return outcomes;
  }
  std::vector<std::thread> threads;
  for (std::int32_t i = 0; i < job.ranks_here; ++i) {
    UniqueFd own = i == 0 ? std::move(listener) : UniqueFd();
    threads.emplace_back([&job, &main, &outcomes, i, port, fd = std::move(own)]() mutable {
      name_this_thread("weft-rank-" + std::to_string(job.rank + i));
      outcomes[static_cast<std::size_t>(i)] = outcome_of(job, job.rank + i, port, std::move(fd), main);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

int detail::run_program(const char* program, const RankMain& main) {
  int exit_code = 0;
  try {
    const JobEnvironment job = net::read_job_environment();
    for (const RankOutcome& outcome : run_job(job, main)) {
      if (outcome.failure == nullptr) continue;
      const std::string who = job.world_size > 1 ? "rank " + std::to_string(outcome.rank) + ": " : std::string();
      try {
        std::rethrow_exception(outcome.failure);
      } catch (const Error& error) {
        report(program, who, error.what());
        exit_code = is_bad_use(error.code()) && exit_code == 0 ? kExitBadUse : kExitFailure;
      } catch (const std::exception& error) {
        report(program, who, error.what());
        exit_code = kExitFailure;
      } catch (...) {
        report(program, who, "ended by an exception that is no std::exception");
        exit_code = kExitFailure;
      }
    }
  } catch (const Error& error) {
    report(program, "", error.what());
    return is_bad_use(error.code()) ? kExitBadUse : kExitFailure;
  } catch (const std::exception& error) {
    report(program, "", error.what());
    return kExitFailure;
  }
  return exit_code;
}

}  // namespace weft
