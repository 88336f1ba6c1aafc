#include "weft/net/launch/program_search.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace weft::net::launch {
namespace {

Error refuse(std::string_view program, std::string_view reason) {
  return {Errc::invalid_argument, "program '" + std::string(program) + "'", reason};
}

// Why `path` cannot be executed; nothing when it can.
std::optional<std::string> obstacle(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return "does not exist";
    return std::string("cannot be used: ") + std::strerror(errno);
  }
  if (S_ISDIR(info.st_mode)) return "is a directory";
  if (!S_ISREG(info.st_mode)) return "is not a regular file";
  if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) {
    if (errno == EACCES) return "is not executable (chmod +x would make it so)";
    return std::string("cannot be executed: ") + std::strerror(errno);
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> find_program(std::string_view program, std::string_view search_path) {
  if (program.empty()) return refuse(program, "the name is empty");
  if (program.find('\0') != std::string_view::npos) {
    // Not repeated in the message, which would end at that byte.
    return Error(Errc::invalid_argument, "program", "the name holds a zero byte");
  }

  const std::string name(program);
  if (name.find('/') != std::string::npos) {
    if (auto reason = obstacle(name)) return refuse(program, *reason);
    return name;
  }

  std::string nearest_miss;
  for (bool more = true; more;) {
    const std::size_t colon = search_path.find(':');
    const std::string folder(search_path.substr(0, colon));
    more = colon != std::string_view::npos;
    if (more) search_path.remove_prefix(colon + 1);

    const std::string path = folder.empty() ? "./" + name : folder + "/" + name;
    const auto reason = obstacle(path);
    if (!reason) return path;
    if (nearest_miss.empty() && *reason != "does not exist") nearest_miss = path + " " + *reason;
  }

  if (!nearest_miss.empty()) return refuse(program, nearest_miss);
  const std::string here = "./" + name;
  if (!obstacle(here)) return refuse(program, "not found in PATH; did you mean " + here + "?");
  return refuse(program, "not found in PATH, nor in the current directory");
}

}  // namespace weft::net::launch
