// A record as JSON: one line, all keys, null for what is absent.
#include "json_line.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bench {
namespace {

using nlohmann::json;

TEST(JsonLine, HasEveryKeyEvenWhereNothingIsKnown) {
  const std::string line = json_line(Record());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const json object = json::parse(line);
  for (const char* const key : {"transport", "median_us", "p99_us", "min_us", "mad_us", "GBps", "Mmsgps", "floor",
                                "floor_us", "over_floor", "allocs_per_op", "syscalls_per_op"}) {
    ASSERT_TRUE(object.contains(key)) << key;
    EXPECT_TRUE(object[key].is_null()) << key;
  }
  for (const char* const key :
       {"name", "ranks", "threads", "bytes", "iters", "repeats", "batch", "compiler", "commit"}) {
    ASSERT_TRUE(object.contains(key)) << key;
    EXPECT_FALSE(object[key].is_null()) << key;
  }
}

TEST(JsonLine, KeepsValuesAndQuotesText) {
  Record record;
  record.name = "latency";
  record.transport = "shm";
  record.ranks = 2;
  record.threads = true;
  record.bytes = 8;
  record.median_us = 0.25;
  record.allocs_per_op = 0.0;
  record.more.emplace_back("hidden", 0.5);
  record.notes.emplace_back("a \"note\"\nin two lines \xff");
  const std::string line = json_line(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const json object = json::parse(line);
  EXPECT_EQ(object["name"], "latency");
  EXPECT_EQ(object["transport"], "shm");
  EXPECT_EQ(object["threads"], true);
  EXPECT_EQ(object["bytes"], 8);
  EXPECT_EQ(object["median_us"], 0.25);
  EXPECT_EQ(object["allocs_per_op"], 0.0);  // zero is not null
  EXPECT_EQ(object["hidden"], 0.5);
  EXPECT_EQ(object["notes"].size(), 1U);
}

}  // namespace
}  // namespace bench
