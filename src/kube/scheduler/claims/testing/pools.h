#pragma once

// Small clusters for tests: devices, classes and claims in few words.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/scheduler/claims/allocate.h"

namespace drover::kube::scheduler::testing {

using nlohmann::json;

inline json gpu(const std::string& name, const json& more = json::object()) {
  json device{{"name", name},
              {"attributes", {{"model", {{"string", "a100"}}}, {"numa", {{"int", 0}}}}},
              {"capacity", {{"memory", {{"value", "80Gi"}}}}}};
  device.merge_patch(more);
  return device;
}
/// Not a json: of one in braces it would make that one.
using List = std::vector<json>;

inline List gpus(std::size_t count) {
  List devices;
  for (std::size_t i = 0; i < count; ++i) devices.push_back(gpu("gpu-" + std::to_string(i)));
  return devices;
}

inline json slice(const std::string& name, const List& devices, const json& more = json::object()) {
  json object{{"metadata", {{"name", name}}},
              {"spec",
               {{"driver", "gpu.example.com"},
                {"pool", {{"name", "n1"}, {"generation", 1}, {"resourceSliceCount", 1}}},
                {"nodeName", "n1"},
                {"devices", devices}}}};
  object["spec"].merge_patch(more);
  return object;
}

inline json wish(const json& more = json::object()) {
  json made{{"deviceClassName", "gpu"}, {"allocationMode", "ExactCount"}, {"count", 1}};
  made.merge_patch(more);
  return made;
}
inline json request(const std::string& name, const json& more = json::object()) {
  return {{"name", name}, {"exactly", wish(more)}};
}
inline json selected_by(const std::string& expression) {
  return {{"selectors", {{{"cel", {{"expression", expression}}}}}}};
}
inline json claim(const std::string& name, const List& requests, const json& more = json::object()) {
  json devices{{"requests", requests}};
  devices.merge_patch(more);
  return {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "uid-" + name}}},
          {"spec", {{"devices", devices}}}};
}
/// With results: {{"device", "gpu-0"}} and what else is to be in them.
inline json allocated(json object, const List& results) {
  for (const auto& result : results) {
    json full{{"request", "r"}, {"driver", "gpu.example.com"}, {"pool", "n1"}};
    full.merge_patch(result);
    object["status"]["allocation"]["devices"]["results"].push_back(full);
  }
  return object;
}

/// A node "n1" with devices of one driver, of which a class "gpu" takes all.
struct TestCluster {
  explicit TestCluster(const List& slices = {}, ServerVersion version = kNewestKnown) : pools(version) {
    put_class({{"selectors", {{{"cel", {{"expression", "device.driver == 'gpu.example.com'"}}}}}}});
    for (const auto& object : slices) put(object);
  }

  void put(const json& object) { pools.put_slice(read_resource_slice(object).value()); }
  void put_claim(const json& object) { pools.put_claim(read_resource_claim(object).value()); }
  void put_class(const json& spec, const std::string& name = "gpu", const std::string& created = "") {
    pools.put_class(
        read_device_class({{"metadata", {{"name", name}, {"creationTimestamp", created}}}, {"spec", spec}})
            .value());
  }

  Result<Allocated> allocate(const List& claims) const {
    std::vector<ResourceClaim> read;
    for (const auto& object : claims) read.push_back(read_resource_claim(object).value());
    std::vector<const ResourceClaim*> pointers;
    for (const auto& one : read) pointers.push_back(&one);
    return scheduler::allocate(pools, node, pointers, options);
  }
  /// "gpu-0 gpu-1; gpu-2", by claim; or what is said instead.
  std::string given(const List& claims) const {
    const auto allocated = allocate(claims);
    if (!allocated) return "error: " + allocated.error().message;
    if (!allocated->fits()) return allocated->refusal;
    std::string text;
    for (const auto& allocation : allocated->allocations) {
      text += text.empty() ? "" : "; ";
      for (const auto& device : allocation.devices)
        text += (text.empty() || text.ends_with(' ') ? "" : " ") + device.id.device;
    }
    return text;
  }

  DevicePools pools;
  Node node{.name = "n1", .labels = {{"zone", "a"}}};
  AllocateOptions options;
};

}  // namespace drover::kube::scheduler::testing
