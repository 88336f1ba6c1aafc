// Goal: the processors that are reported are those this process may use, each once, and threads can be tied to them.
#include "weft/runtime/topology.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

namespace weft {
namespace {

TEST(Topology, ReportsTheProcessorsOfTheAffinityMaskOnce) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const std::vector<unsigned> processors = available_processors();
  EXPECT_EQ(std::set<unsigned>(processors.begin(), processors.end()).size(), processors.size());
  EXPECT_EQ(processors.size(), static_cast<std::size_t>(CPU_COUNT(&allowed)));
  for (const unsigned processor : processors) EXPECT_TRUE(CPU_ISSET(processor, &allowed));
  EXPECT_GE(available_cores(), 1U);
  EXPECT_LE(available_cores(), processors.size());
}

TEST(Topology, ABoundThreadStillKnowsWhatTheProcessMayUse) {
  const std::vector<unsigned> all = available_processors();
  std::thread([&all] {
    ASSERT_TRUE(bind_this_thread(all.back()).ok());
    EXPECT_EQ(available_processors(), all);
    std::thread([&all] {
      unbind_this_thread();  // a thread starts where its maker was bound
      cpu_set_t mask;
      CPU_ZERO(&mask);
      ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
      EXPECT_EQ(static_cast<std::size_t>(CPU_COUNT(&mask)), all.size());
    }).join();
  }).join();
}

TEST(Topology, ABindingEndsWithItsScope) {
  std::thread([] {
    const std::vector<unsigned> all = available_processors();
    {
      ThreadBinding binding;
      ASSERT_TRUE(binding.bind(all.back()).ok());
      EXPECT_EQ(::sched_getcpu(), static_cast<int>(all.back()));
    }
    cpu_set_t mask;
    CPU_ZERO(&mask);
    ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(static_cast<std::size_t>(CPU_COUNT(&mask)), all.size());
  }).join();
}

TEST(Topology, TiesAThreadToAProcessor) {
  std::thread([] {
    const unsigned processor = available_processors().front();
    ASSERT_TRUE(bind_this_thread(processor).ok());
    EXPECT_EQ(::sched_getcpu(), static_cast<int>(processor));
  }).join();
}

TEST(Topology, RefusesAProcessorThatIsNotThere) {
  const Outcome beyond = bind_this_thread(1'000'000);
  EXPECT_EQ(beyond.code, Errc::invalid_argument);
  EXPECT_EQ(beyond.native, EINVAL);
  EXPECT_FALSE(bind_this_thread(1023).ok());
}

TEST(Topology, NamesAThread) {
  std::thread([] {
    char name[32] = {};
    name_this_thread("weft-0");
    ASSERT_EQ(::pthread_getname_np(::pthread_self(), name, sizeof name), 0);
    EXPECT_STREQ(name, "weft-0");
    name_this_thread("a name that is far too long");
    ASSERT_EQ(::pthread_getname_np(::pthread_self(), name, sizeof name), 0);
    EXPECT_STREQ(name, "a name that is ");
  }).join();
}

}  // namespace
}  // namespace weft
