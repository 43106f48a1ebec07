// Answers what tests/test_kube_allocator.py asks, which compares it with what Kubernetes' own allocator says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "kube/scheduler/claims/allocate.h"
#include "kube/scheduler/claims/extended_resources.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

DevicePools pools_of_case(const json& given) {
  DevicePools pools({1, given.at("minor").get<int>()});
  for (const auto& claim : given.at("allocated")) pools.put_claim(read_resource_claim(claim).value());
  for (const auto& slice : given.at("slices")) pools.put_slice(read_resource_slice(slice).value());
  for (const auto& object : given.at("classes")) pools.put_class(read_device_class(object).value());
  for (const auto& rule : given.at("taintRules")) pools.put_taint_rule(read_device_taint_rule(rule).value());
  return pools;
}

/// What comes, goes and comes again leaves nothing behind.
void churn_devices(DevicePools& pools, const json& given) {
  for (const auto& claim : given.at("allocated")) pools.remove_claim(read_resource_claim(claim)->uid);
  for (const auto& slice : given.at("slices")) pools.remove_slice(read_resource_slice(slice)->name);
  for (const auto& node : given.at("nodes")) EXPECT_TRUE(pools.pools_of(read_node(node).value()).empty());
  for (int i = 0; i < 2; ++i)
    for (const auto& slice : given.at("slices")) pools.put_slice(read_resource_slice(slice).value());
  for (int i = 0; i < 2; ++i)
    for (const auto& claim : given.at("allocated")) pools.put_claim(read_resource_claim(claim).value());
}

json said_of(const Result<Allocated>& allocated) {
  if (!allocated)
    return {{"error", to_string(allocated.error())},
            {"unsupported", allocated.error().kind == ErrorKind::kUnsupported}};
  if (!allocated->fits()) return {{"none", allocated->refusal}};
  json results = json::array();
  for (const auto& allocation : allocated->allocations) results.push_back(to_json(allocation, ""));
  return {{"results", std::move(results)}};
}

json answer_to(const DevicePools& pools, const json& given, const json& asked) {
  const auto& nodes = given.at("nodes");
  const auto node = read_node(*std::ranges::find_if(nodes, [&](const json& it) {
                      return it["metadata"]["name"] == asked.at("node");
                    })).value();
  std::vector<ResourceClaim> claims;
  for (const auto& claim : asked.at("claims")) claims.push_back(read_resource_claim(claim).value());
  std::vector<const ResourceClaim*> pointers;
  for (const auto& claim : claims) pointers.push_back(&claim);
  AllocateOptions options;
  options.admin_access = true;
  const auto plain = allocate(pools, node, pointers, options);
  json said{{"plain", said_of(plain)}};
  if (plain && plain->fits()) {
    // Wished for backwards, it is the same again.
    for (const auto& allocation : plain->allocations)
      for (const auto& device : allocation.devices) options.first.insert(options.first.begin(), device.id);
    said["again"] = said_of(allocate(pools, node, pointers, options));
    options.first.clear();
  }
  if (const auto eligible = eligible_devices(pools, node, pointers, options))
    for (const auto& of_claim : *eligible) {
      auto& list = said["eligible"].emplace_back(json::object());
      for (const auto& wish : of_claim)
        for (const auto& id : wish.devices) list[wish.request].push_back({id.driver, id.pool, id.device});
    }
  for (const auto& id : asked.at("first")) options.first.push_back({id[0], id[1], id[2]});
  said["first"] = said_of(allocate(pools, node, pointers, options));
  return said;
}

json claim_for(const DevicePools& pools, const json& asked) {
  ResourceNames names;
  for (const auto& name : asked.at("resources")) names.insert(name.get<std::string>());
  FieldReader reader;
  const auto claim = extended_resource_claim(read_container_resources(reader, asked.at("pod")), names, pools);
  return {{"requests", to_json(claim, "one", "p", "uid")["spec"]["devices"]["requests"]},
          {"mappings", claim_status(claim, "name")["requestMappings"]}};
}

TEST(ClaimCases, AreAnswered) {
  const auto* const asked = std::getenv("DROVER_TEST_CLAIM_CASES");
  const auto* const answered = std::getenv("DROVER_TEST_CLAIM_ANSWERS");
  if (asked == nullptr || answered == nullptr) GTEST_SKIP() << "for tests/test_kube_allocator.py";
  std::ifstream input(asked);
  std::ofstream output(answered);
  ASSERT_TRUE(input && output);
  for (std::string line; std::getline(input, line);) {
    const auto given = json::parse(line);
    auto pools = pools_of_case(given);
    churn_devices(pools, given);
    json said{{"answers", json::array()}, {"pods", json::array()}};
    for (const auto& question : given.at("asked"))
      said["answers"].push_back(answer_to(pools, given, question));
    for (const auto& pod : given.at("pods")) said["pods"].push_back(claim_for(pools, pod));
    output << said << '\n';
  }
}

}  // namespace
}  // namespace drover::kube::scheduler
