#include "kube/scheduler/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/shorten.h"
#include "kube/client/object.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr auto* kBound = "pv.kubernetes.io/bind-completed";
constexpr std::array<const char*, 4> kZoneLabels{
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
// What else stands in the specification of a volume is where it comes from.
constexpr std::array<std::string_view, 9> kNoSources{"accessModes",      "capacity",
                                                     "claimRef",         "mountOptions",
                                                     "nodeAffinity",     "persistentVolumeReclaimPolicy",
                                                     "storageClassName", "volumeAttributesClassName",
                                                     "volumeMode"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// "a__b"; nullopt when one of them is empty.
std::optional<std::set<std::string>> zones_of(std::string_view text) {
  constexpr std::string_view kSeparator = "__";
  std::set<std::string> zones;
  for (;;) {
    const auto end = text.find(kSeparator);
    const auto zone = trimmed(text.substr(0, end));
    if (zone.empty()) return std::nullopt;
    zones.emplace(zone);
    if (end == std::string_view::npos) return zones;
    text.remove_prefix(end + kSeparator.size());
  }
}

}  // namespace

Result<VolumeClaim> read_volume_claim(const json& object) {
  FieldReader reader;
  VolumeClaim claim;
  const auto& metadata = reader.object(object, "metadata");
  const auto& spec = reader.object(object, "spec");
  claim.name_space = reader.text(metadata, "namespace");
  claim.name = reader.text(metadata, "name");
  if (claim.name.empty() || claim.name_space.empty()) reader.mistake("it has no name, or no namespace");
  claim.volume_name = reader.text(spec, "volumeName");
  const auto annotations = reader.text_map(metadata, "annotations");
  claim.bound = !claim.volume_name.empty() && annotations.contains(kBound);
  claim.lost = reader.text(reader.object(object, "status"), "phase") == "Lost";
  claim.terminating = !reader.text(metadata, "deletionTimestamp").empty();
  const auto modes = reader.texts(spec, "accessModes");
  claim.for_one_pod = std::ranges::find(modes, "ReadWriteOncePod") != modes.end();
  DROVER_CHECK_OK(reader.status(fmt::format("the PersistentVolumeClaim '{}'", shortened(key_of(object)))));
  return claim;
}

Result<Volume> read_volume(const json& object) {
  FieldReader reader;
  Volume volume;
  const auto& metadata = reader.object(object, "metadata");
  const auto& spec = reader.object(object, "spec");
  volume.name = reader.name(object);
  for (const auto& [name, value] : spec.items())
    if (value.is_object() && std::ranges::find(kNoSources, name) == kNoSources.end()) volume.kind = name;
  volume.driver = reader.text(reader.object(spec, "csi"), "driver");
  volume.node_terms = read_node_terms(reader, reader.object(reader.object(spec, "nodeAffinity"), "required"));
  const auto labels = reader.text_map(metadata, "labels");
  for (const auto* const key : kZoneLabels)
    if (const auto* const value = label(labels, key))
      if (auto zones = zones_of(*value)) volume.zones.emplace_back(key, std::move(*zones));
  DROVER_CHECK_OK(reader.status(fmt::format("the PersistentVolume '{}'", shortened(key_of(object)))));
  return volume;
}

}  // namespace drover::kube::scheduler
