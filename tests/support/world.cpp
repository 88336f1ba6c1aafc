#include "support/world.hpp"

#include <gtest/gtest.h>

namespace weft::test {

std::vector<RankOutcome> run_world(const WorldOptions& options, const RankMain& main) {
  net::JobEnvironment job;
  job.world_size = options.ranks;
  job.local_world_size = options.ranks;
  job.ranks_per_process = options.ranks;
  job.ranks_here = options.ranks;
  job.transport = options.transport;
  job.canonical_order = options.canonical_order;
  job.timeout = options.timeout;
  job.bind = net::BindChoice::none;
  return run_job(job, main);
}

void in_world(const WorldOptions& options, const RankMain& main) {
  for (const RankOutcome& outcome : run_world(options, main)) {
    EXPECT_EQ(outcome.failure, nullptr) << "rank " << outcome.rank << ": " << text_of(outcome.failure);
  }
}

std::string text_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return "ok";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "not a std::exception";
  }
}

Errc code_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return Errc::ok;
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.code();
  } catch (...) {
    return Errc::io;
  }
}

std::string name_of(net::TransportChoice transport) {
  return transport == net::TransportChoice::shm ? "shm" : "tcp";
}

}  // namespace weft::test
