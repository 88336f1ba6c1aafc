// Goal: ranks that registered different parameters or options are all told what differs, and nothing is reduced.
#include "weft/gpu/bucket_agreement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/transport_hub.hpp"
#include "weft/gpu/bucket_scheduler.hpp"
#include "weft/runtime/as_result.hpp"

namespace weft::gpu {
namespace {

std::vector<ParameterInfo> parameters_of(std::initializer_list<std::size_t> counts) {
  std::vector<ParameterInfo> parameters;
  for (const std::size_t count : counts) {
    std::string name = "layer";
    name += std::to_string(parameters.size());
    parameters.push_back(ParameterInfo{name, count});
  }
  return parameters;
}

std::string text_of(const Result<void>& result) {
  return result ? std::string() : result.error().what();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Two ranks that registered different things, on one hub.
Task<void> step_with(std::unique_ptr<BucketTransport> transport, std::vector<ParameterInfo> parameters,
                     BucketOptions options, Result<void>* result) {
  BucketScheduler scheduler(std::move(transport), parameters, options);
  for (std::size_t id = 0; id < parameters.size(); ++id)
    scheduler.mark_ready(id);
  *result = co_await as_result(scheduler.step());
}

struct Disagreement {
  std::vector<ParameterInfo> here;
  std::vector<ParameterInfo> there;
  BucketOptions options_here{};
  BucketOptions options_there{};
};

Task<void> start_both(Nursery& nursery, TransportHub* hub, const Disagreement* ranks, Result<void>* here,
                      Result<void>* there) {
  nursery.start(step_with(hub->transport(0), ranks->here, ranks->options_here, here));
  nursery.start(step_with(hub->transport(1), ranks->there, ranks->options_there, there));
  co_return;
}

void expect_mismatch(const Disagreement& ranks, const std::string& here, const std::string& there) {
  TransportHub hub(2);
  hub.gate.set();
  Reactor reactor;
  Result<void> results[2];
  reactor.run(with_nursery(&start_both, &hub, &ranks, &results[0], &results[1]));
  for (const Result<void>& result : results)
    EXPECT_EQ(result.code(), Errc::mismatch);
  EXPECT_TRUE(contains(text_of(results[0]), here)) << text_of(results[0]);
  EXPECT_TRUE(contains(text_of(results[1]), there)) << text_of(results[1]);
  EXPECT_TRUE(hub.started.empty());
}

TEST(BucketAgreement, RanksWithDifferentNumbersOfParametersAreToldSo) {
  const Disagreement ranks{parameters_of({1, 2, 3}), parameters_of({1, 2})};
  expect_mismatch(ranks, "this rank registered 3 parameters, the others from 2 to 3", "this rank registered 2");
}

TEST(BucketAgreement, RanksWithDifferentParametersAreToldTheFirst) {
  Disagreement ranks{parameters_of({1, 2, 3, 4}), parameters_of({1, 2, 30, 40})};
  expect_mismatch(ranks, "'layer2' with 3 elements", "'layer2' with 30 elements");
  ranks.there = ranks.here;
  ranks.there[0].name = "embedding";
  expect_mismatch(ranks, "'layer0' with 1 elements", "'embedding' with 1 elements");
}

TEST(BucketAgreement, RanksWithDifferentOptionsAreToldSo) {
  Disagreement ranks{parameters_of({1, 2}), parameters_of({1, 2})};
  ranks.options_there.bucket_bytes = 12345;
  ranks.options_there.first_bucket_bytes = 99;
  expect_mismatch(ranks, "bucket_bytes 4194304", "bucket_bytes 12345");
}

}  // namespace
}  // namespace weft::gpu
