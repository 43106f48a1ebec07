#include "kube/scheduler/claims/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/shorten.h"
#include "kube/client/object.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr std::size_t kMostDevices = 128;

template <typename T>
std::vector<T> items_of(const json& value) {
  std::vector<T> items;
  for (const auto& item : value) items.push_back(item.get<T>());
  return items;
}
template <>
std::vector<cel::Version> items_of(const json& value) {
  std::vector<cel::Version> items;
  for (const auto& item : value) items.push_back({item.get<std::string>()});
  return items;
}

bool all_are(const json& list, bool (*is)(const json&)) {
  return list.is_array() && !list.empty() && std::ranges::all_of(list, is);
}
bool is_whole(const json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>()));
}
bool is_text(const json& value) {
  return value.is_string();
}
bool is_flag(const json& value) {
  return value.is_boolean();
}

/// nullopt for what is none of the kinds of values that there are.
std::optional<cel::Attribute> value_of_attribute(const json& given) {
  if (!given.is_object() || given.size() != 1) return std::nullopt;
  const auto kind = given.begin().key();
  const auto& value = given.begin().value();
  if (kind == "int" && is_whole(value)) return value.get<std::int64_t>();
  if (kind == "bool" && is_flag(value)) return value.get<bool>();
  if (kind == "string" && is_text(value)) return value.get<std::string>();
  if (kind == "version" && is_text(value)) return cel::Version{value.get<std::string>()};
  if (kind == "ints" && all_are(value, is_whole)) return items_of<std::int64_t>(value);
  if (kind == "bools" && all_are(value, is_flag)) return items_of<bool>(value);
  if (kind == "strings" && all_are(value, is_text)) return items_of<std::string>(value);
  if (kind == "versions" && all_are(value, is_text)) return items_of<cel::Version>(value);
  return std::nullopt;
}

Counters read_counters(FieldReader& reader, const json& set) {
  Counters counters;
  for (const auto& [name, counter] : reader.object(set, "counters").items()) {
    if (const auto value = read_amount(reader, counter, "value"))
      counters.emplace(name, value->value);
    else
      reader.mistake(fmt::format("the counter '{}' has no value", shortened(name)));
  }
  return counters;
}

CounterSets read_counter_sets(FieldReader& reader, const json& object, const char* list, const char* name) {
  CounterSets sets;
  for (const auto& set : reader.objects(object, list))
    sets.emplace_back(reader.text(set, name), read_counters(reader, set));
  return sets;
}

NodeChoice read_choice(FieldReader& reader, const json& object) {
  return {reader.text(object, "nodeName"), reader.flag(object, "allNodes"),
          read_node_terms(reader, reader.object(object, "nodeSelector"))};
}

bool chooses_nothing(const NodeChoice& choice) {
  return choice.node_name.empty() && !choice.all && !choice.terms;
}

/// The texts are the same for many devices.
std::shared_ptr<const std::string> why_not(FieldReader& reader, const json& device, const json& spec,
                                           const std::optional<NodeTerms>& terms) {
  static const auto binding = std::make_shared<const std::string>(
      "uses binding conditions, which a pod would have to wait for before it is bound");
  static const auto allocatable = std::make_shared<const std::string>(
      "uses nodeAllocatableResources, which count against what the node has of ordinary resources");
  static const auto skip =
      std::make_shared<const std::string>("uses skipNodeOperations, which only some kubelets know");
  static const auto several = std::make_shared<const std::string>(
      "uses a node selector of several terms, which no claim can pass on");
  if (!reader.texts(device, "bindingConditions").empty() ||
      !reader.texts(device, "bindingFailureConditions").empty())
    return binding;
  if (!reader.object(device, "nodeAllocatableResources").empty()) return allocatable;
  if (!reader.texts(spec, "skipNodeOperations").empty()) return skip;
  if (terms && terms->size() > 1) return several;
  return nullptr;
}

std::shared_ptr<const DeviceKind> read_kind(FieldReader& reader, const std::string& driver,
                                            const json& device) {
  DeviceKind kind;
  kind.driver = driver;
  kind.shared = reader.flag(device, "allowMultipleAllocations");
  for (const auto& [name, value] : reader.object(device, "attributes").items()) {
    if (auto read = value_of_attribute(value))
      kind.attributes.push_back(
          std::make_shared<const DeviceAttribute>(DeviceAttribute{name, std::move(*read)}));
    else
      reader.mistake(fmt::format("the attribute '{}' is of no kind that is known", shortened(name)));
  }
  for (const auto& [name, value] : reader.object(device, "capacity").items())
    kind.capacities.push_back(std::make_shared<const DeviceCapacity>(read_capacity(reader, name, value)));
  return std::make_shared<const DeviceKind>(std::move(kind));
}

Device read_device(FieldReader& reader, const ResourceSlice& slice, const json& given, const json& spec) {
  Device device;
  device.name = reader.text(given, "name");
  if (device.name.empty()) reader.mistake("a device has no name");
  device.kind = read_kind(reader, slice.driver, given);
  Taints taints;
  for (const auto& taint : reader.objects(given, "taints"))
    taints.push_back({reader.text(taint, "key"), reader.text(taint, "value"), reader.text(taint, "effect")});
  if (!taints.empty()) device.taints = std::make_shared<const Taints>(std::move(taints));
  auto consumes = read_counter_sets(reader, given, "consumesCounters", "counterSet");
  if (!consumes.empty()) device.consumes = std::make_shared<const CounterSets>(std::move(consumes));
  if (slice.nodes_by_device) device.nodes = std::make_shared<const NodeChoice>(read_choice(reader, given));
  device.binds_to_node = reader.flag(given, "bindsToNode");
  device.unsupported = why_not(reader, given, spec, device.nodes ? device.nodes->terms : slice.nodes.terms);
  return device;
}

/// Which devices may be had together is more than their counters say then.
bool uses_compatibility_groups(FieldReader& reader, const json& device) {
  return std::ranges::any_of(reader.objects(device, "consumesCounters"), [&](const json& consumed) {
    return !reader.texts(consumed, "compatibilityGroups").empty();
  });
}

}  // namespace

std::string to_string(const DeviceId& id) {
  return fmt::format("{}/{}/{}", id.driver, id.pool, id.device);
}

const cel::Attribute* attribute(const DeviceKind& kind, std::string_view full_name) {
  const auto find = [&](std::string_view name) -> const cel::Attribute* {
    const auto found =
        std::ranges::find(kind.attributes, name, [](const auto& it) -> std::string_view { return it->name; });
    return found == kind.attributes.end() ? nullptr : &(*found)->value;
  };
  if (const auto* const found = find(full_name)) return found;
  const auto slash = full_name.find('/');
  if (slash == std::string_view::npos || full_name.substr(0, slash) != kind.driver) return nullptr;
  return find(full_name.substr(slash + 1));
}

bool chooses(const NodeChoice& choice, const Node& node) {
  if (!choice.node_name.empty()) return choice.node_name == node.name;
  return choice.all || (choice.terms && matches(*choice.terms, node.labels, node.name));
}

Result<ResourceSlice> read_resource_slice(const json& object) {
  FieldReader reader;
  ResourceSlice slice;
  const auto& spec = reader.object(object, "spec");
  const auto& pool = reader.object(spec, "pool");
  slice.name = reader.text(reader.object(object, "metadata"), "name");
  slice.driver = reader.text(spec, "driver");
  slice.pool = reader.text(pool, "name");
  if (slice.name.empty() || slice.driver.empty() || slice.pool.empty())
    reader.mistake("it has no name, no driver, or no pool");
  slice.generation = reader.number(pool, "generation").value_or(0);
  slice.slice_count = reader.number(pool, "resourceSliceCount").value_or(0);
  if (slice.generation < 0 || slice.slice_count < 1)
    reader.mistake("its pool has no generation, or no slices");
  slice.nodes = read_choice(reader, spec);
  slice.nodes_by_device = reader.flag(spec, "perDeviceNodeSelection");
  if (chooses_nothing(slice.nodes) && !slice.nodes_by_device)
    slice.unsupported = "says in no way that is known here on which nodes its devices are";
  slice.counters = read_counter_sets(reader, spec, "sharedCounters", "name");
  const auto& devices = reader.objects(spec, "devices");
  if (devices.size() > kMostDevices) reader.mistake(fmt::format("it has more than {} devices", kMostDevices));
  for (const auto& device : devices) {
    slice.devices.push_back(read_device(reader, slice, device, spec));
    slice.has_binding_conditions =
        slice.has_binding_conditions || !reader.texts(device, "bindingConditions").empty();
    if (uses_compatibility_groups(reader, device))
      slice.unsupported = "uses compatibility groups, which say which of its devices may be had together";
  }
  DROVER_CHECK_OK(reader.status(fmt::format("the ResourceSlice '{}'", shortened(key_of(object)))));
  return slice;
}

}  // namespace drover::kube::scheduler
