#include "json_line.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <weft_build_info.hpp>

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos && colon + 2 <= line.size()) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

}  // namespace

std::string json_line(const Record& record) {
  Json json;
  json["name"] = record.name;
  json["transport"] = or_null(record.transport);
  json["ranks"] = record.ranks;
  json["threads"] = record.threads;
  json["bytes"] = record.bytes;
  json["iters"] = record.iters;
  json["repeats"] = record.repeats;
  json["batch"] = record.batch;
  json["median_us"] = or_null(record.median_us);
  json["p99_us"] = or_null(record.p99_us);
  json["min_us"] = or_null(record.min_us);
  json["mad_us"] = or_null(record.mad_us);
  json["GBps"] = or_null(record.gbytes_per_s);
  json["Mmsgps"] = or_null(record.mmsg_per_s);
  json["floor"] = or_null(record.floor);
  json["floor_us"] = or_null(record.floor_us);
  json["over_floor"] = or_null(record.over_floor);
  json["allocs_per_op"] = or_null(record.allocs_per_op);
  json["syscalls_per_op"] = or_null(record.syscalls_per_op);
  for (const auto& [key, value] : record.more)
    json[key] = value;
  json["notes"] = record.notes;
  json["compiler"] = WEFT_COMPILER;
  json["commit"] = WEFT_COMMIT;
  json["cpu"] = or_null(cpu_model());
  // A note may quote what the system said, in any encoding.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bench
