// A Record as one line of JSON, for scripts and for keeping.
#pragma once

#include <string>

#include "record.hpp"

namespace bench {

/// One object on one line, without the newline. What is absent is null; all keys are always there but those of
/// Record::more. `GBps` counts 1e9 bytes, `Mmsgps` 1e6 messages. Also has `compiler`, `commit` and `cpu`.
[[nodiscard]] std::string json_line(const Record& record);

}  // namespace bench
