#include "kube/dra/device_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "gpu/share_tier.h"
#include "kube/client/object.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

/// Of a field manager's name; the API server refuses longer ones.
constexpr std::size_t kMostLetters = 128;

/// From the weakest.
struct Tier {
  std::string_view name, held_by, reason, message;
};
constexpr std::array<Tier, 3> kTiers = {
    Tier{gpu::kCounted, "nothing", "Counted",
         "nothing holds pods to this share: the log of 'drover kube node' says why"},
    Tier{gpu::kGuarded, "guard", "Guarded", "pods see this share as the whole card, and are refused more"},
    Tier{gpu::kHard, "hardware", "Hard", "this part of a GPU is a wall in the hardware"}};

json conditions_of(const Tier& tier) {
  return json::array(
      {{{"type", "Ready"}, {"status", "True"}, {"reason", "Prepared"}, {"message", "pods can be given it"}},
       {{"type", "ShareEnforced"},
        {"status", tier.name == gpu::kCounted ? "False" : "True"},
        {"reason", tier.reason},
        {"message", tier.message}}});
}

std::string_view tier_name(const PreparedDevice& device, const PreparedClaim& claim) {
  return device.mig ? gpu::kHard : claim.limits.empty() ? gpu::kCounted : gpu::kGuarded;
}

json data_of(const Tier& tier, const std::optional<share::Limit>& share) {
  json data = {{"tier", tier.name}, {"heldBy", tier.held_by}};
  if (!share) return data;
  data["memoryBytes"] = share->bytes;
  data["computePercent"] = share->milli / 10.0;
  return data;
}

/// The device of a pool that an entry is of.
std::pair<std::string, std::string> device_of(const json& entry) {
  return {text_at(entry, "/device"), text_at(entry, "/shareID")};
}

bool is_of(const json& entry, const StatusOwner& owner) {
  return text_at(entry, "/driver") == owner.driver && text_at(entry, "/pool") == owner.pool;
}

/// That of the same type; null when there is none.
json condition_like(const json& entry, const json& condition) {
  for (const auto& each : entry.value("conditions", json::array()))
    if (text_at(each, "/type") == text_at(condition, "/type")) return each;
  return nullptr;
}

bool says(const json& entry, const json& wanted) {
  if (entry.value("data", json()) != wanted.at("data")) return false;
  return std::ranges::all_of(wanted.at("conditions"), [&](const json& condition) {
    auto there = condition_like(entry, condition);
    if (there.is_object()) there.erase("lastTransitionTime");
    return there == condition;
  });
}

void date(json& entry, const json& before, TimePoint now) {
  for (auto& condition : entry.at("conditions")) {
    const auto there = condition_like(before, condition);
    const bool is_old =
        there.is_object() && text_at(there, "/status") == condition.at("status").get<std::string>();
    const auto since = is_old ? text_at(there, "/lastTransitionTime") : "";
    condition["lastTransitionTime"] = since.empty() ? format_time(now) : since;
  }
}

}  // namespace

json device_statuses(const PreparedClaim& claim, const std::map<std::string, NodeGpu>& gpus,
                     const StatusOwner& owner) {
  auto entries = json::array();
  for (const auto& device : claim.devices) {
    const auto& allocated = device.allocated;
    const auto share = share_of(device, gpus);
    // Of a share of a GPU whose size nobody knows it is not known how large it is.
    if (allocated.admin || (!device.mig && share && !*share)) continue;
    const auto& tier = *std::ranges::find(kTiers, tier_name(device, claim), &Tier::name);
    json entry = {{"driver", owner.driver},
                  {"pool", owner.pool},
                  {"device", allocated.device},
                  {"data", data_of(tier, share.value_or(std::nullopt))},
                  {"conditions", conditions_of(tier)}};
    if (!allocated.share_id.empty()) entry["shareID"] = allocated.share_id;
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::optional<json> status_change(const json& claim, json entries, const StatusOwner& owner, TimePoint now) {
  std::map<std::pair<std::string, std::string>, json> there;
  for (const auto& entry : claim.value("/status/devices"_json_pointer, json::array()))
    if (is_of(entry, owner)) there.emplace(device_of(entry), entry);
  bool is_said = there.size() == entries.size();
  for (auto& entry : entries) {
    const auto found = there.find(device_of(entry));
    const auto& before = found == there.end() ? json::object() : found->second;
    is_said = is_said && says(before, entry);
    date(entry, before, now);
  }
  if (is_said) return std::nullopt;
  // Without the list the manager has no entries any more.
  return entries.empty() ? json::object() : json{{"devices", std::move(entries)}};
}

std::string status_manager(const StatusOwner& owner) {
  auto name = fmt::format("drover/{}/{}", owner.driver, owner.pool);
  return name.size() <= kMostLetters ? name : "drover/" + sha256_hex(name);
}

std::string tier_in_status(const json& claim) {
  const auto told = claim.value("/status/devices"_json_pointer, json::array());
  for (const auto& tier : kTiers)
    if (std::ranges::any_of(told,
                            [&](const json& entry) { return text_at(entry, "/data/tier") == tier.name; }))
      return std::string(tier.name);
  return "";
}

}  // namespace drover::kube::dra
