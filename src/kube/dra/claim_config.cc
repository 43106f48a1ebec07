#include "kube/dra/claim_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/decode.h"
#include "base/shorten.h"
#include "kube/dra/quantity.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kMostEntries = 64;
constexpr std::size_t kMostLimits = 64;
constexpr std::string_view kGroup = "resource.nvidia.com/v1beta1";
constexpr unsigned kBitsOfMib = 20;

/// `whose`: "" for all GPUs, or "of '0' ".
std::optional<std::uint64_t> read_memory(Decoder& mps, const std::string& name, const std::string& whose,
                                         const std::string& text) {
  const auto bytes = parse_quantity(text);
  if (bytes && *bytes >= (1 << kBitsOfMib)) return static_cast<std::uint64_t>(*bytes) >> kBitsOfMib;
  mps.mistake(name, whose + (bytes ? "must be 1Mi or more" : to_string(bytes.error())));
  return std::nullopt;
}

MpsConfig read_mps(Decoder& mps) {
  constexpr const char* kOfEach = "defaultPerDevicePinnedMemoryLimit";
  constexpr const char* kOfAll = "defaultPinnedDeviceMemoryLimit";
  MpsConfig config;
  if (const auto percent = mps.integer("defaultActiveThreadPercentage", 1, 100))
    config.threads = static_cast<int>(*percent);
  if (const auto text = mps.string(kOfAll)) config.memory_mib = read_memory(mps, kOfAll, "", *text);
  const auto limits = mps.string_map(kOfEach).value_or(std::map<std::string, std::string>());
  if (limits.size() > kMostLimits) mps.mistake(kOfEach, "has too many entries");
  for (const auto& [gpu, text] : limits)
    if (const auto mib = read_memory(mps, kOfEach, fmt::format("of '{}' ", shortened(gpu)), text))
      config.memory_mib_of[gpu] = *mib;
  mps.finish();
  return config;
}

SharingConfig read_sharing(Decoder sharing, bool of_part) {
  constexpr std::array<std::string_view, 2> kStrategies{"TimeSlicing", "MPS"};
  constexpr std::array<std::string_view, 4> kIntervals{"Default", "Short", "Medium", "Long"};
  SharingConfig config;
  const auto strategy = sharing.choice("strategy", kStrategies);
  if (strategy == 1) {
    config.mps.emplace();
    if (auto mps = sharing.object("mpsConfig")) config.mps = read_mps(*mps);
    if (of_part)
      sharing.mistake("strategy", "cannot be MPS for a part of a GPU in MIG mode",
                      "leave it out: whoever has the part shares it in turns");
  } else if (auto slicing = sharing.object("timeSlicingConfig")) {
    config.interval = share::Interval::kDefault;
    if (const auto chosen = slicing->choice("interval", kIntervals))
      config.interval = static_cast<share::Interval>(*chosen);
    if (of_part && config.interval != share::Interval::kDefault)
      slicing->mistake("interval", "must be Default for a part of a GPU in MIG mode");
    slicing->finish();
  }
  sharing.finish();
  return config;
}

SharingConfig read_parameters(Decoder parameters) {
  const auto version = parameters.string("apiVersion");
  const auto kind = parameters.string("kind");
  const bool of_part = kind == "MigDeviceConfig";
  if (version != kGroup || (kind != "GpuConfig" && !of_part)) {
    parameters.mistake("kind",
                       fmt::format("'{}' of '{}' is not known", kind.value_or(""), version.value_or("")),
                       fmt::format("GpuConfig and MigDeviceConfig of {} are", kGroup));
    return {};
  }
  SharingConfig config;
  if (auto sharing = parameters.object("sharing")) config = read_sharing(std::move(*sharing), of_part);
  parameters.finish();
  return of_part ? SharingConfig() : config;
}

/// Texts of a list, whatever else is in it: the API server has checked them.
std::vector<std::string> requests_of(const json& entry) {
  std::vector<std::string> names;
  if (const auto found = entry.find("requests"); found != entry.end() && found->is_array())
    for (const auto& name : *found)
      if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

}  // namespace

Result<std::vector<ConfigEntry>> read_configuration(const json& entries, const std::string& driver) {
  std::vector<ConfigEntry> of_classes, of_claim;
  if (entries.is_null()) return of_claim;
  if (!entries.is_array() || entries.size() > kMostEntries)
    return fail(ErrorKind::kInvalid, "the claim's configuration is no list, or too long");
  std::vector<Error> mistakes;
  for (const auto& entry : entries) {
    if (!entry.is_object() || !entry.contains("opaque") || !entry["opaque"].is_object()) continue;
    const auto& opaque = entry["opaque"];
    if (opaque.value("driver", json()) != driver) continue;
    const auto parameters = opaque.value("parameters", json());
    auto sharing = read_parameters(Decoder(parameters, mistakes, "/opaque/parameters"));
    const bool is_of_class = entry.value("source", json()) == "FromClass";
    const auto kind = parameters.is_object() ? parameters.value("kind", json()) : json();
    if (kind == "GpuConfig")
      (is_of_class ? of_classes : of_claim).push_back({requests_of(entry), std::move(sharing)});
  }
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "the claim's configuration"));
  std::ranges::move(of_claim, std::back_inserter(of_classes));
  return of_classes;
}

SharingConfig sharing_of(const std::vector<ConfigEntry>& entries, const std::string& request) {
  const auto of_all = request.substr(0, request.find('/'));
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (entry->requests.empty() || std::ranges::any_of(entry->requests, [&](const std::string& name) {
          return name == request || name == of_all;
        }))
      return entry->sharing;
  return {};
}

}  // namespace drover::kube::dra
