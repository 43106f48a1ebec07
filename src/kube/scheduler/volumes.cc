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
constexpr auto* kSelectedNode = "volume.kubernetes.io/selected-node";
constexpr auto* kOldClass = "volume.beta.kubernetes.io/storage-class";
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

VolumeTraits traits_of(FieldReader& reader, const json& spec) {
  VolumeTraits traits;
  for (auto& mode : reader.texts(spec, "accessModes")) traits.modes.insert(std::move(mode));
  traits.block = reader.text(spec, "volumeMode") == "Block";
  traits.attributes_class = reader.text(spec, "volumeAttributesClassName");
  return traits;
}

std::string class_of(FieldReader& reader, const Labels& annotations, const json& spec) {
  if (const auto* const old = label(annotations, kOldClass)) return *old;
  return reader.text(spec, "storageClassName");
}

std::optional<Nanos> size_of(FieldReader& reader, const json& amounts, const char* name) {
  const auto quantities = reader.quantities(amounts, name);
  const auto found = quantities.find("storage");
  return found == quantities.end() ? std::nullopt : std::optional(found->second);
}

/// In whole bytes, rounded up.
Nanos bytes(Nanos nanos) {
  constexpr Nanos kByte = 1'000'000'000;
  return (nanos + kByte - 1) / kByte * kByte;
}

std::string named_in(const char* kind, const json& object) {
  return fmt::format("the {} '{}'", kind, shortened(key_of(object)));
}

}  // namespace

bool is_owner(const Volume::Owner& owner, const VolumeClaim& claim) {
  return owner.name_space == claim.name_space && owner.claim == claim.name &&
         (owner.uid.empty() || owner.uid == claim.uid);
}

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
  claim.traits = traits_of(reader, spec);
  claim.for_one_pod = claim.traits.modes.contains("ReadWriteOncePod");
  claim.uid = reader.text(metadata, "uid");
  claim.storage_class = class_of(reader, annotations, spec);
  if (const auto* const node = label(annotations, kSelectedNode)) claim.selected_node = *node;
  claim.size = size_of(reader, reader.object(spec, "resources"), "requests");
  if (const auto& selector = reader.object(spec, "selector"); !selector.is_null())
    claim.selector = read_selector(reader, selector).value_or(Selector{});
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
  volume.labels = reader.text_map(metadata, "labels");
  volume.storage_class = class_of(reader, reader.text_map(metadata, "annotations"), spec);
  volume.size = size_of(reader, spec, "capacity").value_or(0);
  volume.traits = traits_of(reader, spec);
  volume.available = reader.text(reader.object(object, "status"), "phase") == "Available";
  volume.terminating = !reader.text(metadata, "deletionTimestamp").empty();
  if (const auto& owner = reader.object(spec, "claimRef"); !owner.is_null())
    volume.owner = {reader.text(owner, "namespace"), reader.text(owner, "name"), reader.text(owner, "uid")};
  for (const auto* const key : kZoneLabels)
    if (const auto* const value = label(volume.labels, key))
      if (auto zones = zones_of(*value)) volume.zones.emplace_back(key, std::move(*zones));
  DROVER_CHECK_OK(reader.status(fmt::format("the PersistentVolume '{}'", shortened(key_of(object)))));
  return volume;
}

Result<StorageClass> read_storage_class(const json& object) {
  FieldReader reader;
  StorageClass read{.name = reader.name(object), .provisioner = reader.text(object, "provisioner")};
  read.waits = reader.text(object, "volumeBindingMode") == "WaitForFirstConsumer";
  for (const auto& term : reader.objects(object, "allowedTopologies")) {
    if (!read.topologies) read.topologies.emplace();
    std::vector<Requirement> requirements;
    for (const auto& expression : reader.objects(term, "matchLabelExpressions"))
      requirements.push_back(
          {reader.text(expression, "key"), LabelOperator::kIn, reader.texts(expression, "values")});
    if (!requirements.empty()) read.topologies->push_back(std::move(requirements));
  }
  DROVER_CHECK_OK(reader.status(named_in("StorageClass", object)));
  return read;
}

Result<CsiDriver> read_csi_driver(const json& object) {
  FieldReader reader;
  CsiDriver read{reader.name(object), reader.flag(reader.object(object, "spec"), "storageCapacity")};
  DROVER_CHECK_OK(reader.status(named_in("CSIDriver", object)));
  return read;
}

Result<StorageCapacity> read_storage_capacity(const json& object) {
  FieldReader reader;
  StorageCapacity read;
  read.name = reader.name(object);
  read.name_space = reader.text(reader.object(object, "metadata"), "namespace");
  read.storage_class = reader.text(object, "storageClassName");
  read.nodes = read_selector(reader, reader.object(object, "nodeTopology")).value_or(Selector{});
  for (const auto* const name : {"capacity", "maximumVolumeSize"}) {
    const auto& amount = reader.field(object, name);
    if (amount.is_null()) continue;
    const auto nanos = parse_nanos(amount.is_string() ? amount.get_ref<const std::string&>() : amount.dump());
    if (nanos)
      read.largest = bytes(*nanos);
    else
      reader.mistake(fmt::format("'{}': {}", name, nanos.error().message));
  }
  DROVER_CHECK_OK(reader.status(named_in("CSIStorageCapacity", object)));
  return read;
}

}  // namespace drover::kube::scheduler
