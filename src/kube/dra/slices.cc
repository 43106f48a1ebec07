#include "kube/dra/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/shorten.h"
#include "kube/dra/quantity.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

/// With taints or counters; 128 without. One limit for both: a taint must not move devices to other slices.
constexpr std::size_t kDevicesInSlice = 64;
constexpr std::size_t kCounterSetsInSlice = 8;
constexpr std::size_t kLongestDriver = 63;
constexpr std::size_t kLongestName = 253;
/// "-" and the number of a slice.
constexpr std::size_t kNumberLength = 4;

std::string slice_name(const SliceOwner& owner, std::size_t number) {
  return fmt::format("{}-{}-{}", owner.node, owner.driver, number);
}

json device_in(ApiVersion version, const json& device) {
  if (version == ApiVersion::kV1) return device;
  auto basic = device;
  basic.erase("name");
  return {{"name", device.at("name")}, {"basic", std::move(basic)}};
}

json object_of(const SliceOwner& owner, std::size_t number, std::size_t count) {
  json metadata{{"name", slice_name(owner, number)}};
  if (!owner.node_uid.empty())
    metadata["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                                {"kind", "Node"},
                                                {"name", owner.node},
                                                {"uid", owner.node_uid},
                                                {"controller", true}}});
  return {{"apiVersion", owner.version == ApiVersion::kV1 ? "resource.k8s.io/v1" : "resource.k8s.io/v1beta1"},
          {"kind", "ResourceSlice"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"driver", owner.driver},
            {"nodeName", owner.node},
            {"pool", {{"name", owner.node}, {"generation", 0}, {"resourceSliceCount", count}}},
            {"devices", json::array()}}}};
}

/// What the API server may write in another way is written in one.
void normalise(json& value) {
  if (value.is_array()) {
    for (auto& item : value) normalise(item);
    return;
  }
  if (!value.is_object()) return;
  for (const char* name : {"value", "default", "min", "max", "step"})
    if (const auto field = value.find(name); field != value.end() && field->is_string())
      if (const auto number = parse_quantity(field->get_ref<const std::string&>())) *field = *number;
  for (auto& item : value) normalise(item);
}

json field_of(const json& object, const char* pointer) {
  const json::json_pointer place(pointer);
  return object.contains(place) ? object.at(place) : json();
}

json content_of(const json& slice) {
  auto spec = field_of(slice, "/spec");
  if (spec.is_object() && spec.contains("pool") && spec["pool"].is_object()) spec["pool"].erase("generation");
  if (spec.is_object() && spec.value("devices", json()).is_null()) spec["devices"] = json::array();
  normalise(spec);
  return {spec, field_of(slice, "/metadata/ownerReferences")};
}

std::int64_t generation_of(const json& slice) {
  const auto generation = field_of(slice, "/spec/pool/generation");
  return generation.is_number_integer() ? generation.get<std::int64_t>() : 0;
}

std::string name_of(const json& slice) {
  const auto name = field_of(slice, "/metadata/name");
  return name.is_string() ? name.get<std::string>() : "";
}

json with_generation(json slice, std::int64_t generation) {
  slice["spec"]["pool"]["generation"] = generation;
  return slice;
}

void drop_informational_taints(json& device) {
  const auto taints = device.find("taints");
  if (taints == device.end()) return;
  json kept = json::array();
  for (auto& taint : *taints)
    if (taint.at("effect") != "None") kept.push_back(std::move(taint));
  if (kept.empty())
    device.erase("taints");
  else
    *taints = std::move(kept);
}

/// Labels and the like that others put there stay.
json update_of(const json& there, const json& wanted, std::int64_t generation) {
  auto slice = with_generation(wanted, generation);
  auto metadata = there.at("metadata");
  metadata.erase("managedFields");
  metadata.erase("ownerReferences");
  metadata.update(wanted.at("metadata"));
  slice["metadata"] = std::move(metadata);
  return slice;
}

}  // namespace

bool SliceChanges::empty() const {
  return update.empty() && create.empty() && remove.empty();
}

bool says_the_same(const json& slice, const json& wanted) {
  return content_of(slice) == content_of(wanted);
}

PoolContent fitted(PoolContent content, const ServerKnows& server) {
  auto& devices = content.devices;
  if (!server.counters) {
    content.counter_sets.clear();
    std::erase_if(devices, [](const json& device) { return device.contains("consumesCounters"); });
  }
  if (!server.taints || !server.informational_taints)
    std::ranges::for_each(devices, drop_informational_taints);
  if (!server.taints) std::erase_if(devices, [](const json& device) { return device.contains("taints"); });
  return content;
}

std::vector<json> slices_of(const SliceOwner& owner, const PoolContent& content) {
  const auto& [devices, sets] = content;
  const auto of_devices = std::max<std::size_t>(1, (devices.size() + kDevicesInSlice - 1) / kDevicesInSlice);
  const auto count = of_devices + (sets.size() + kCounterSetsInSlice - 1) / kCounterSetsInSlice;
  std::vector<json> slices;
  for (std::size_t i = 0; i < count; ++i) slices.push_back(object_of(owner, i, count));
  for (std::size_t i = 0; i < devices.size(); ++i)
    slices[i / kDevicesInSlice]["spec"]["devices"].push_back(device_in(owner.version, devices[i]));
  for (std::size_t i = 0; i < sets.size(); ++i) {
    auto& spec = slices[of_devices + i / kCounterSetsInSlice]["spec"];
    spec.erase("devices");
    spec["sharedCounters"].push_back(sets[i]);
  }
  return slices;
}

SliceChanges plan_slices(const std::vector<json>& there, const std::vector<json>& wanted) {
  std::int64_t newest = 0;
  std::map<std::string, const json*> by_name;
  for (const auto& slice : there) {
    newest = std::max(newest, generation_of(slice));
    by_name.emplace(name_of(slice), &slice);
  }
  std::set<std::string> kept;
  std::size_t different = 0;
  bool whole = newest > 0;
  for (const auto& slice : wanted) {
    const auto found = by_name.find(name_of(slice));
    kept.insert(name_of(slice));
    if (found == by_name.end() || generation_of(*found->second) != newest)
      whole = false;
    else if (!says_the_same(*found->second, slice))
      ++different;
  }
  SliceChanges changes;
  for (const auto& [name, slice] : by_name) {
    if (kept.contains(name)) continue;
    changes.remove.push_back(name);
    if (generation_of(*slice) == newest) whole = false;
  }
  const bool in_place = whole && different <= 1;
  const auto generation = in_place ? newest : newest + 1;
  for (const auto& slice : wanted) {
    const auto found = by_name.find(name_of(slice));
    if (found == by_name.end())
      changes.create.push_back(with_generation(slice, generation));
    else if (!in_place || !says_the_same(*found->second, slice))
      changes.update.push_back(update_of(*found->second, slice, generation));
  }
  return changes;
}

Status check_names(const std::string& driver, const std::string& node) {
  const auto check = [](const char* what, const std::string& name, std::size_t longest) -> Status {
    const auto letter = [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9'); };
    const bool plain = std::ranges::all_of(name, [&](char c) { return letter(c) || c == '-' || c == '.'; });
    if (name.empty() || name.size() > longest || !plain || !letter(name.front()) || !letter(name.back()))
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is no name of a {}", shortened(name), what),
                  fmt::format("small letters, digits, '-' and '.', at most {}", longest));
    return {};
  };
  DROVER_CHECK_OK(check("DRA driver", driver, kLongestDriver));
  return check("node", node, kLongestName - kLongestDriver - 1 - kNumberLength);
}

}  // namespace drover::kube::dra
