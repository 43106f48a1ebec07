#include "kube/dra/claim_config.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/decode.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kMostEntries = 64;
constexpr std::string_view kGroup = "resource.nvidia.com/v1beta1";

void check_sharing(Decoder sharing) {
  constexpr std::array<std::string_view, 1> kStrategies{"TimeSlicing"};
  constexpr std::array<std::string_view, 1> kIntervals{"Default"};
  sharing.choice("strategy", kStrategies);
  if (auto slicing = sharing.object("timeSlicingConfig")) {
    slicing->choice("interval", kIntervals);
    slicing->finish();
  }
  sharing.finish();
}

void check_parameters(Decoder parameters) {
  const auto version = parameters.string("apiVersion");
  const auto kind = parameters.string("kind");
  if (version != kGroup || (kind != "GpuConfig" && kind != "MigDeviceConfig")) {
    parameters.mistake("kind",
                       fmt::format("'{}' of '{}' is not known", kind.value_or(""), version.value_or("")),
                       fmt::format("GpuConfig and MigDeviceConfig of {} are", kGroup));
    return;
  }
  if (auto sharing = parameters.object("sharing")) check_sharing(std::move(*sharing));
  parameters.finish();
}

}  // namespace

Status check_configuration(const json& entries, const std::string& driver) {
  if (entries.is_null()) return {};
  if (!entries.is_array() || entries.size() > kMostEntries)
    return fail(ErrorKind::kInvalid, "the claim's configuration is no list, or too long");
  std::vector<Error> mistakes;
  for (const auto& entry : entries) {
    if (!entry.is_object() || !entry.contains("opaque") || !entry["opaque"].is_object()) continue;
    const auto& opaque = entry["opaque"];
    if (opaque.value("driver", json()) != driver) continue;
    const auto parameters = opaque.value("parameters", json());
    check_parameters(Decoder(parameters, mistakes, "/opaque/parameters"));
  }
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "the claim's configuration"));
  return {};
}

}  // namespace drover::kube::dra
