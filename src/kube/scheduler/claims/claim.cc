#include "kube/scheduler/claims/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/shorten.h"
#include "kube/client/object.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRequests = 32;
constexpr std::size_t kMostWishes = 8;

/// Keeps the first of what is not supported.
void not_supported(std::string& unsupported, std::string what) {
  if (unsupported.empty()) unsupported = std::move(what);
}

std::string named(const char* kind, const json& object) {
  return fmt::format("the {} '{}'", kind, shortened(key_of(object)));
}

std::vector<std::string> read_selectors(FieldReader& reader, const json& object, std::string& unsupported) {
  std::vector<std::string> selectors;
  for (const auto& selector : reader.objects(object, "selectors")) {
    const auto& cel = reader.object(selector, "cel");
    if (cel.is_null()) not_supported(unsupported, "uses a selector that is not written in CEL");
    selectors.push_back(reader.text(cel, "expression"));
  }
  return selectors;
}

std::optional<DeviceConfig> read_config(FieldReader& reader, const json& object, std::string& unsupported) {
  const auto& opaque = reader.object(object, "opaque");
  if (opaque.is_null()) {
    not_supported(unsupported, "uses a configuration that is not for a driver alone");
    return std::nullopt;
  }
  return DeviceConfig{reader.text(opaque, "driver"), reader.field(opaque, "parameters").dump()};
}

DeviceWish read_wish(FieldReader& reader, const json& object, std::string& unsupported) {
  DeviceWish wish;
  wish.device_class = reader.text(object, "deviceClassName");
  if (wish.device_class.empty()) not_supported(unsupported, "asks for devices of no class");
  wish.selectors = read_selectors(reader, object, unsupported);
  const auto mode = reader.text(object, "allocationMode");
  wish.all = mode == "All";
  if (!wish.all && mode != "ExactCount")
    not_supported(unsupported, fmt::format("uses the allocation mode '{}'", shortened(mode)));
  wish.count = reader.number(object, "count").value_or(1);
  if (wish.count < 1) reader.mistake("it asks for less than one device");
  wish.admin = reader.flag(object, "adminAccess");
  const auto& tolerations = reader.objects(object, "tolerations");
  for (const auto& given : tolerations) {
    auto operation = reader.text(given, "operator");
    wish.tolerations.push_back({reader.text(given, "key"), operation.empty() ? "Equal" : std::move(operation),
                                reader.text(given, "value"), reader.text(given, "effect")});
  }
  if (!tolerations.empty()) wish.tolerations_json = tolerations.dump();
  wish.capacity = read_amounts(reader, reader.object(object, "capacity"), "requests");
  if (!reader.objects(object, "derivedAttributes").empty())
    not_supported(unsupported, "uses derived attributes, which are calculated from others");
  return wish;
}

DeviceRequest read_request(FieldReader& reader, const json& object, std::string& unsupported) {
  DeviceRequest request{reader.text(object, "name"), {}};
  if (request.name.empty()) reader.mistake("a request has no name");
  const auto& one = reader.object(object, "exactly");
  const auto& several = reader.objects(object, "firstAvailable");
  if (several.size() > kMostWishes)
    reader.mistake(fmt::format("a request has more than {} alternatives", kMostWishes));
  if (one.is_object()) request.wishes.push_back(read_wish(reader, one, unsupported));
  for (const auto& item : several) {
    request.wishes.push_back(read_wish(reader, item, unsupported));
    request.wishes.back().name = reader.text(item, "name");
    if (request.wishes.back().name.empty()) reader.mistake("an alternative has no name");
  }
  if (one.is_object() && !several.empty()) reader.mistake("a request asks in two ways");
  if (request.wishes.empty()) not_supported(unsupported, "asks in a way that is not known here");
  return request;
}

AttributeConstraint read_constraint(FieldReader& reader, const json& object, std::string& unsupported) {
  AttributeConstraint constraint;
  for (auto& request : reader.texts(object, "requests")) constraint.requests.insert(std::move(request));
  constraint.attribute = reader.text(object, "matchAttribute");
  if (!constraint.attribute.empty()) return constraint;
  constraint.attribute = reader.text(object, "distinctAttribute");
  constraint.distinct = true;
  if (constraint.attribute.empty())
    not_supported(unsupported, "uses a constraint of a kind that is not known here");
  return constraint;
}

std::shared_ptr<const ClaimAllocation> read_allocation(FieldReader& reader, const json& given) {
  if (given.is_null()) return nullptr;
  ClaimAllocation allocation;
  for (const auto& result : reader.objects(reader.object(given, "devices"), "results")) {
    AllocatedDevice device;
    device.request = reader.text(result, "request");
    device.id = {reader.text(result, "driver"), reader.text(result, "pool"), reader.text(result, "device")};
    device.admin = reader.flag(result, "adminAccess");
    device.share_id = reader.text(result, "shareID");
    device.consumed = read_amounts(reader, result, "consumedCapacity");
    allocation.devices.push_back(std::move(device));
  }
  allocation.nodes = read_node_terms(reader, reader.object(given, "nodeSelector"));
  return std::make_shared<const ClaimAllocation>(std::move(allocation));
}

constexpr auto* kForExtendedResources = "resource.kubernetes.io/extended-resource-claim";

json written(const std::vector<Requirement>& requirements) {
  constexpr std::array<const char*, 6> kOperators{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
  json list = json::array();
  for (const auto& requirement : requirements) {
    list.push_back(
        {{"key", requirement.key}, {"operator", kOperators[static_cast<std::size_t>(requirement.is)]}});
    if (!requirement.values.empty()) list.back()["values"] = requirement.values;
  }
  return list;
}

json written(const AllocatedDevice& device) {
  json result{{"request", device.request},
              {"driver", device.id.driver},
              {"pool", device.id.pool},
              {"device", device.id.device}};
  if (device.admin) result["adminAccess"] = true;
  if (!device.tolerations_json.empty()) result["tolerations"] = json::parse(device.tolerations_json);
  if (!device.share_id.empty()) result["shareID"] = device.share_id;
  for (const auto& [name, amount] : device.consumed) result["consumedCapacity"][name] = amount.text;
  return result;
}

json written(const AllocatedConfig& config) {
  json result{
      {"source", config.from_class ? "FromClass" : "FromClaim"},
      {"opaque", {{"driver", config.config.driver}, {"parameters", json::parse(config.config.parameters)}}}};
  if (!config.requests.empty()) result["requests"] = config.requests;
  return result;
}

}  // namespace

std::string full_name(const DeviceRequest& request, const DeviceWish& wish) {
  return wish.name.empty() ? request.name : fmt::format("{}/{}", request.name, wish.name);
}

ClaimSpec read_claim_spec(FieldReader& reader, const json& object) {
  ClaimSpec spec;
  const auto& devices = reader.object(object, "devices");
  const auto& requests = reader.objects(devices, "requests");
  if (requests.size() > kMostRequests)
    reader.mistake(fmt::format("it has more than {} requests", kMostRequests));
  for (const auto& request : requests)
    spec.requests.push_back(read_request(reader, request, spec.unsupported));
  for (const auto& constraint : reader.objects(devices, "constraints"))
    spec.constraints.push_back(read_constraint(reader, constraint, spec.unsupported));
  for (const auto& given : reader.objects(devices, "config"))
    if (auto config = read_config(reader, given, spec.unsupported))
      spec.configs.push_back({reader.texts(given, "requests"), std::move(*config)});
  return spec;
}

json to_json(const ClaimAllocation& allocation, const std::string& time) {
  json devices{{"results", json::array()}};
  for (const auto& device : allocation.devices) devices["results"].push_back(written(device));
  for (const auto& config : allocation.configs) devices["config"].push_back(written(config));
  json result{{"devices", std::move(devices)}};
  if (allocation.nodes) {
    auto& terms = result["nodeSelector"]["nodeSelectorTerms"] = json::array();
    for (const auto& term : *allocation.nodes) {
      terms.push_back(json::object());
      if (!term.labels.empty()) terms.back()["matchExpressions"] = written(term.labels);
      if (!term.fields.empty()) terms.back()["matchFields"] = written(term.fields);
    }
  }
  if (!time.empty()) result["allocationTimestamp"] = time;
  return result;
}

bool is_available_on(const ClaimAllocation& allocation, const Node& node) {
  return !allocation.nodes || matches(*allocation.nodes, node.labels, node.name);
}

Result<ResourceClaim> read_resource_claim(const json& object) {
  FieldReader reader;
  ResourceClaim claim;
  const auto& metadata = reader.object(object, "metadata");
  const auto& status = reader.object(object, "status");
  claim.uid = reader.text(metadata, "uid");
  claim.name_space = reader.text(metadata, "namespace");
  claim.name = reader.text(metadata, "name");
  if (claim.uid.empty() || claim.name_space.empty() || claim.name.empty())
    reader.mistake("it has no name, no namespace, or no uid");
  for (const auto& owner : reader.objects(metadata, "ownerReferences"))
    if (reader.flag(owner, "controller")) claim.owner_uid = reader.text(owner, "uid");
  const auto annotations = reader.text_map(metadata, "annotations");
  const auto* const special = label(annotations, kForExtendedResources);
  claim.for_extended_resources = special != nullptr && *special == "true";
  claim.terminating = !reader.text(metadata, "deletionTimestamp").empty();
  claim.spec = std::make_shared<const ClaimSpec>(read_claim_spec(reader, reader.object(object, "spec")));
  claim.allocation = read_allocation(reader, reader.object(status, "allocation"));
  for (const auto& consumer : reader.objects(status, "reservedFor"))
    claim.reserved_for.push_back(
        {reader.text(consumer, "resource"), reader.text(consumer, "name"), reader.text(consumer, "uid")});
  DROVER_CHECK_OK(reader.status(named("ResourceClaim", object)));
  if (!claim.allocation && !claim.for_extended_resources)
    claim.as_read = std::make_shared<const std::string>(to_text(object));
  return claim;
}

Result<DeviceClass> read_device_class(const json& object) {
  FieldReader reader;
  DeviceClass read;
  const auto& metadata = reader.object(object, "metadata");
  const auto& spec = reader.object(object, "spec");
  read.name = reader.name(object);
  read.created = reader.text(metadata, "creationTimestamp");
  read.selectors = read_selectors(reader, spec, read.unsupported);
  for (const auto& config : reader.objects(spec, "config"))
    if (auto made = read_config(reader, config, read.unsupported)) read.configs.push_back(std::move(*made));
  read.extended_resource = reader.text(spec, "extendedResourceName");
  DROVER_CHECK_OK(reader.status(named("DeviceClass", object)));
  return read;
}

Result<DeviceTaintRule> read_device_taint_rule(const json& object) {
  FieldReader reader;
  DeviceTaintRule rule;
  const auto& spec = reader.object(object, "spec");
  rule.name = reader.name(object);
  const auto& selector = reader.object(spec, "deviceSelector");
  rule.selects = !selector.is_null();
  for (const auto& [name, field] :
       {std::pair("driver", &rule.driver), std::pair("pool", &rule.pool), std::pair("device", &rule.device)})
    if (!reader.field(selector, name).is_null()) *field = reader.text(selector, name);
  const auto& taint = reader.object(spec, "taint");
  rule.taint = {reader.text(taint, "key"), reader.text(taint, "value"), reader.text(taint, "effect")};
  DROVER_CHECK_OK(reader.status(named("DeviceTaintRule", object)));
  return rule;
}

bool is_reserved_for(const ResourceClaim& claim, std::string_view uid) {
  return std::ranges::find(claim.reserved_for, uid, &ClaimConsumer::uid) != claim.reserved_for.end();
}

}  // namespace drover::kube::scheduler
