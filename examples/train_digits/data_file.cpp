#include "data_file.hpp"

#include <string>
#include <system_error>
#include <vector>

#include "weft/runtime/error.hpp"

#ifndef WEFT_DIGITS_DATA
#define WEFT_DIGITS_DATA ""
#endif

namespace digits {

std::filesystem::path find_data_file() {
  std::error_code ignored;  // without /proc the place of the program is unknown, which leaves the other one
  return find_data_file(std::filesystem::read_symlink("/proc/self/exe", ignored), WEFT_DIGITS_DATA);
}

std::filesystem::path find_data_file(const std::filesystem::path& program, const std::filesystem::path& built_with) {
  std::vector<std::filesystem::path> places;
  std::filesystem::path folder = program.parent_path();
  while (!folder.empty()) {
    places.push_back(folder / "examples" / "data" / "digits.csv");
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  if (!built_with.empty()) places.push_back(built_with);

  std::string tried;
  for (const std::filesystem::path& place : places) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(place, ignored)) return place;
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw weft::Error(weft::Errc::invalid_argument, "digits.csv",
                    "not found; name it with --data FILE. Tried: " + (tried.empty() ? "no place" : tried));
}

}  // namespace digits
