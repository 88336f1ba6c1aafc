// Finds the program to start, before anything is started.
#pragma once

#include <string>
#include <string_view>

#include "weft/runtime/result.hpp"

namespace weft::net::launch {

/// The path to give to execve for `program`: itself where it holds a slash, else the first executable of that name in
/// `search_path` (the value of PATH; empty parts mean the current directory, as for execvp).
///
/// Errors: Errc::invalid_argument when there is no such file, it is a directory or may not be executed; the reason
/// names the file and what is wrong with it.
[[nodiscard]] Result<std::string> find_program(std::string_view program, std::string_view search_path);

}  // namespace weft::net::launch
