#include "api/native/request_paths.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/decode.h"

namespace drover::api {
namespace {

using nlohmann::json;

/// Takes the first segment off: "/gpus/0" → "gpus", and "/0" is left.
std::string take_segment(std::string& path) {
  if (path.empty()) return "";
  const auto end = std::min(path.find('/', 1), path.size());
  auto segment = path.substr(1, end - 1);
  path.erase(0, end);
  return segment;
}

/// "/gpus/0/filter/models" → "/gpus/0/model", or "/gpu_model" where the GPUs are all of one kind.
std::string claim_field(std::string rest, const json& said) {
  const auto position = take_segment(rest);
  const bool listed = said.contains("gpus") && said["gpus"].is_array();
  if (position.empty()) return "/gpus";
  const auto first = take_segment(rest);
  if (first == "count" || first.empty()) return listed ? "/gpus/" + position + "/count" : "/gpus";
  constexpr std::array<std::pair<const char*, const char*>, 5> kFilters = {
      {{"models", "model"},
       {"min_memory_bytes", "memory"},
       {"min_compute_capability", "compute_capability"},
       {"ecc", "ecc"},
       {"min_driver", "driver"}}};
  const auto filter = take_segment(rest);
  // A share by memory wants a GPU with so much of it.
  const auto& claim = listed ? said["gpus"].at(std::stoul(position)) : said;
  if (filter == "min_memory_bytes" && said.contains("gpu_share") &&
      !claim.contains(listed ? "memory" : "gpu_memory"))
    return "/gpu_share";
  for (const auto& [value, field] : kFilters)
    if (filter == value) return (listed ? "/gpus/" + position + "/" : "/gpu_") + std::string(field);
  return "/gpus";
}

/// "/attributes/1" → "/constraints/rack": they are kept in the order of the body.
std::string constraint_field(const std::string& position, const json& said) {
  const auto constraints = said.value("constraints", json::object());
  std::size_t at = 0;
  if (constraints.is_object())
    for (const auto& [name, unused] : constraints.items())
      if (std::to_string(at++) == position) return "/constraints/" + pointer_token(name);
  return "/constraints";
}

std::string field_of(std::string path, const json& said) {
  auto rest = path;
  const auto value = take_segment(rest);
  if (value == "gpus") return claim_field(rest, said);
  if (value == "share") return said.contains("gpu_share") ? "/gpu_share" : "/gpus";
  if (value == "part") return "/gpu_part";
  if (value == "milli_cpus") return "/cpus";
  if (value == "memory_bytes") return "/memory";
  if (value == "attributes") return constraint_field(take_segment(rest), said);
  if (value == "interconnect" || value == "group") return "/" + value;
  return path;
}

}  // namespace

Error in_fields(Error error, const json& body) {
  auto rest = error.path;
  if (take_segment(rest) != "members") {
    error.path = field_of(error.path, body);
    return error;
  }
  const auto rank = take_segment(rest);
  const auto gang = body.value("gang", json::object());
  const bool listed = gang.is_object() && gang.contains("members");
  if (rank.empty()) {
    error.path = listed ? "/gang/members" : "/gang/size";
    return error;
  }
  auto said = body;
  if (listed) said.update(gang["members"].at(std::stoul(rank)));
  const auto field = field_of(rest, said);
  auto bare = field;
  const bool own = listed && gang["members"].at(std::stoul(rank)).contains(take_segment(bare));
  error.path = own ? "/gang/members/" + rank + field : field;
  return error;
}

}  // namespace drover::api
