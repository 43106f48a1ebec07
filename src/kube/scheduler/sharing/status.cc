#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/dra/quantity.h"
#include "kube/scheduler/condition.h"
#include "kube/scheduler/fields.h"
#include "kube/scheduler/sharing/rules.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

using Refusals = std::map<std::string, std::string, std::less<>>;

/// "2.5"
std::string thousandths(std::int64_t amount) {
  auto text = fmt::format("{}.{:03}", amount / 1000, amount % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Condition accepted(const Refusals& refused, const std::string& name) {
  const auto found = refused.find(name);
  if (found == refused.end()) return {"Accepted", true, "Valid", ""};
  return {"Accepted", false, "Invalid", found->second};
}

/// What is different of `status`; nullopt for nothing.
std::optional<json> patch_of(const json& object, json status, const std::vector<Condition>& conditions,
                             TimePoint now) {
  FieldReader reader;
  const auto& there = reader.object(object, "status");
  status["conditions"] = json::array();
  for (const auto& condition : conditions) {
    auto written = changed_condition(object, condition, now);
    for (const auto& old : reader.objects(there, "conditions"))
      if (!written && reader.text(old, "type") == condition.type) written.emplace(old);
    status["conditions"].push_back(std::move(*written));
  }
  for (const auto& [name, value] : status.items())
    if (reader.field(there, name.c_str()) != value) return json{{"status", status}};
  return std::nullopt;
}

json status_of(const SharingUse& use) {
  return {{"held",
           {{"gpus", thousandths(use.held.gpu_milli)},
            {"cpus", thousandths(use.held.milli_cpus)},
            {"memory", dra::bytes_quantity(use.held.memory_bytes)}}},
          {"waiting", use.waiting}};
}

}  // namespace

std::optional<json> queue_status(const json& queue, const Sharing& sharing, const SharingUse& use,
                                 TimePoint now) {
  const auto name = text_at(queue, "/metadata/name");
  auto status = status_of(use);
  const auto rules = sharing.rules.queues.find(queue_path(name));
  const auto sure = rules == sharing.rules.queues.end() ? 0 : rules->second.guarantee.gpu_milli.value_or(0);
  status["borrowed"] = {{"gpus", thousandths(std::max<std::int64_t>(0, use.held.gpu_milli - sure))}};
  std::vector conditions{accepted(sharing.refused_queues, name)};
  if (const auto found = sharing.not_guaranteed.find(name); found != sharing.not_guaranteed.end())
    conditions.push_back({"Guaranteed", false, "ParentCannotGive", found->second});
  else
    conditions.push_back({"Guaranteed", conditions.front().holds, conditions.front().reason, ""});
  return patch_of(queue, std::move(status), conditions, now);
}

std::optional<json> quota_status(const json& quota, const Sharing& sharing, const SharingUse& use,
                                 TimePoint now) {
  return patch_of(quota, status_of(use), {accepted(sharing.refused_quotas, text_at(quota, "/metadata/name"))},
                  now);
}

}  // namespace drover::kube::scheduler
