// The table that people read: one row a record, columns aligned, units in the head.
#pragma once

#include <string>

#include "options.hpp"
#include "record.hpp"

namespace bench {

/// The two lines above the rows: what is measured, and the columns with their units.
[[nodiscard]] std::string table_head(Benchmark benchmark, const Record& first);

/// One row, without a newline. "-" stands for what is absent.
[[nodiscard]] std::string table_row(Benchmark benchmark, const Record& record);

}  // namespace bench
