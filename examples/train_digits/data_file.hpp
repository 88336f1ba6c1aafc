// Where the images are, when nobody says so.
#pragma once

#include <filesystem>

namespace digits {

/// The digits.csv that comes with the examples: looked for as examples/data/digits.csv in each folder above the
/// program, then where it lay when the program was built.
/// Errors: weft::Error invalid_argument that lists every place tried.
[[nodiscard]] std::filesystem::path find_data_file();

/// The same for a program that lies at `program` and was built beside `built_with`, which may be empty.
[[nodiscard]] std::filesystem::path find_data_file(const std::filesystem::path& program,
                                                   const std::filesystem::path& built_with);

}  // namespace digits
