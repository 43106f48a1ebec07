#include "cli/gpu_words.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/words.h"

namespace drover::cli {

using nlohmann::json;

namespace {

/// Whether they have it by MPS, and as which group: " by MPS (group train)".
std::string mps_of(const json& holders) {
  if (holders.empty() || holders.front().value("share_by", "") != "mps") return "";
  const auto group = holders.front().value("group", "");
  return group.empty() ? " by MPS" : fmt::format(" by MPS (group {})", group);
}

/// Everyone who has it or a share of it: "alice 1f3a", "alice 1f3a 0.5, bob 0.25 (counted, not enforced)".
std::string holders_of(const json& gpu) {
  std::string text;
  json shares = json::array();
  for (const auto& holder : gpu.value("holders", json::array())) {
    text += (text.empty() ? "" : ", ") + holder.value("user", "");
    const auto task = holder.value("task", json());
    if (task.is_string()) text += " " + task.get<std::string>();
    const int milli = holder.value("milli", 1000);
    const bool whole = milli == 1000 && !holder.contains("mig");
    if (whole) continue;
    shares.push_back(holder);
    text += " " + (holder.contains("mig") ? holder.at("mig").value("profile", "") : parts(milli));
  }
  if (text.empty()) return "-";
  return text + (shares.empty() ? "" : tier_words(shares)) + mps_of(gpu.value("holders", json::array()));
}

/// Processes that are no task's: "2 other processes, 1.5 GiB"; "" when there are none.
std::string strangers_on(const json& gpu) {
  const auto foreign = usage_of(gpu).value("foreign", json::object());
  const auto count = foreign.value("processes", 0);
  if (count == 0) return "";
  return fmt::format("{} other {}, {}", count, count == 1 ? "process" : "processes",
                     format_bytes(foreign.value("memory_bytes", std::uint64_t{0})));
}

}  // namespace

Result<json> gpus_in_use(const Client& client) {
  auto machine = client.get("/v1/gpus?usage=true");
  const bool cannot_say = !machine && (machine.error().kind == ErrorKind::kUnsupported ||
                                       machine.error().kind == ErrorKind::kUnavailable ||
                                       machine.error().kind == ErrorKind::kInvalid);  // it is older
  return cannot_say ? client.get("/v1/gpus") : std::move(machine);
}

json usage_of(const json& gpu) {
  auto usage = gpu.value("usage", json());
  return usage.is_object() ? usage : json::object();
}

std::string health_of_gpu(const json& gpu) {
  if (const auto cordoned = gpu.value("cordoned", ""); gpu.value("healthy", true) && !cordoned.empty())
    return cordoned;
  if (gpu.value("healthy", true)) {
    const std::string health = gpu.value("mig", "") == "enabled" ? "ok, in parts" : "ok";
    return health + (gpu.value("problems", json::array()).empty() ? "" : ", see --json");
  }
  return "unfit: " + gpu.value("unfit", "");
}

std::string memory_of_gpu(const json& gpu) {
  const auto all = gpu.value("memory_bytes", json());
  if (!all.is_number()) return "-";
  const auto used = usage_of(gpu).value("memory_used_bytes", json());
  return used.is_number() ? format_part(used.get<std::uint64_t>(), all.get<std::uint64_t>())
                          : format_bytes(all.get<std::uint64_t>());
}

std::string users_of_gpu(const json& gpu) {
  const auto holders = holders_of(gpu), strangers = strangers_on(gpu);
  if (strangers.empty()) return holders;
  return holders == "-" ? strangers : holders + "; " + strangers;
}

}  // namespace drover::cli
