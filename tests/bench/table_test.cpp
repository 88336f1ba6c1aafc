// The table: columns stay aligned, and what is absent is a dash.
#include "table.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(Table, RowsAreAsWideAsTheHead) {
  for (const Benchmark benchmark : {Benchmark::floor, Benchmark::latency, Benchmark::bandwidth, Benchmark::rate,
                                    Benchmark::all_reduce, Benchmark::overlap}) {
    Record record;
    record.name = "floor_cache_line";
    record.bytes = 65536;
    record.median_us = 1234.5678;
    record.floor_us = 0.25;
    const std::string head = table_head(benchmark, record);
    const std::string columns = head.substr(head.find('\n') + 1);
    EXPECT_EQ(columns.size(), table_row(benchmark, record).size()) << columns;
    EXPECT_EQ(head.find('\n'), head.rfind('\n'));
  }
}

TEST(Table, TheHeadSaysWhatWasMeasured) {
  Record record;
  record.ranks = 4;
  record.transport = "tcp";
  EXPECT_EQ(table_head(Benchmark::rate, record).find("rate: 4 ranks, processes, tcp\n"), 0U);
  record.threads = true;
  EXPECT_EQ(table_head(Benchmark::rate, record).find("rate: 4 ranks, threads of one process, tcp\n"), 0U);
}

TEST(Table, NumbersHaveFourDigitsAndAbsentOnesAreADash) {
  Record record;
  record.bytes = 1 << 20;
  record.median_us = 0.21344;
  record.p99_us = 15.6249;
  record.min_us = 40213.4;
  const std::string row = table_row(Benchmark::latency, record);
  EXPECT_NE(row.find(" 1M "), std::string::npos) << row;
  EXPECT_NE(row.find(" 0.213 "), std::string::npos) << row;
  EXPECT_NE(row.find(" 15.62 "), std::string::npos) << row;
  EXPECT_NE(row.find(" 40213 "), std::string::npos) << row;
  EXPECT_NE(row.find(" - "), std::string::npos) << row;
}

}  // namespace
}  // namespace bench
