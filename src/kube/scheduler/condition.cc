#include "kube/scheduler/condition.h"

#include <nlohmann/json.hpp>

#include "base/shorten.h"
#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {

using nlohmann::json;

std::optional<json> changed_condition(const json& object, const Condition& condition, TimePoint now) {
  constexpr std::size_t kLongest = 32'000;  // 32,768 are allowed
  FieldReader reader;                       // of what is damaged there, nothing is kept
  json written = {{"type", condition.type},
                  {"status", condition.holds ? "True" : "False"},
                  {"reason", condition.reason},
                  {"message", shortened(condition.message, kLongest)},
                  {"lastTransitionTime", format_time(now)}};
  if (const auto generation = reader.number(reader.object(object, "metadata"), "generation"))
    written["observedGeneration"] = *generation;
  for (const auto& there : reader.objects(reader.object(object, "status"), "conditions")) {
    if (reader.text(there, "type") != condition.type) continue;
    if (there.value("status", json()) == written["status"] && there.contains("lastTransitionTime"))
      written["lastTransitionTime"] = there["lastTransitionTime"];
    if (there == written) return std::nullopt;
  }
  return written;
}

}  // namespace drover::kube::scheduler
