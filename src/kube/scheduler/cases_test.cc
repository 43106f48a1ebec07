// Answers what tests/test_kube_scheduler.py asks, which compares it with what kube-scheduler's own plugins
// say.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "kube/client/object.h"
#include "kube/scheduler/predicates.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

const json& items(const json& given, const char* name) {
  static const json none = json::array();
  const auto found = given.find(name);
  return found == given.end() ? none : *found;
}

Pod pod_of(const json& pod, const json& given) {
  return read_pod(pod, {1, given.at("minor").get<int>()}).value();
}

Cluster cluster_of(const json& given) {
  Cluster cluster;
  // Backwards: the order in which objects come must not matter.
  for (const auto& pod : items(given, "pods")) cluster.put_pod(pod_of(pod, given));
  for (const auto& node : items(given, "csiNodes")) cluster.put_csi_drivers(read_csi_node(node).value());
  for (const auto& node : items(given, "nodes")) cluster.put_node(read_node(node).value());
  for (const auto& claim : items(given, "claims")) cluster.put_volume_claim(read_volume_claim(claim).value());
  for (const auto& volume : items(given, "volumes")) cluster.put_volume(read_volume(volume).value());
  for (const auto& given_class : items(given, "storageClasses"))
    cluster.put_storage_class(read_storage_class(given_class).value());
  for (const auto& driver : items(given, "csiDrivers"))
    cluster.put_csi_driver(read_csi_driver(driver).value());
  for (const auto& capacity : items(given, "capacities"))
    cluster.put_storage_capacity(read_storage_capacity(capacity).value());
  for (const auto& object : items(given, "namespaces"))
    cluster.put_namespace(key_of(object), object["metadata"].value("labels", Labels()));
  return cluster;
}

/// By predicate, by node: the reasons. Under "verdict" what a scheduler would be told, with the predicate
/// first.
json answer(const Cluster& cluster, const Pod& pod) {
  json said = json::object();
  const Predicates predicates(cluster, pod);
  for (const auto& [name, state] : cluster.nodes()) {
    if (!state.node) continue;
    for (std::size_t i = 0; i < kPredicates; ++i) {
      const auto predicate = static_cast<Predicate>(i);
      if (const auto reasons = predicates.reasons(predicate, state); !reasons.empty())
        said[std::string(name_of(predicate))][name] = reasons;
    }
    const auto verdict = predicates.check(state);
    if (verdict.fits()) continue;
    said["verdict"][name] = verdict.reasons;
    said["verdict"][name].insert(said["verdict"][name].begin(), name_of(verdict.predicate));
  }
  return said;
}

/// Pods come and go, and come again: nothing may be left of them.
void churn(Cluster& cluster, const json& given) {
  for (const auto& pod : items(given, "pods")) cluster.remove_pod(pod_of(pod, given).uid);
  for (const auto& [name, state] : cluster.nodes()) {
    EXPECT_TRUE(state.pods.empty() && state.ports.empty() && state.requested == Resources()) << name;
  }
  EXPECT_TRUE(cluster.anti_affinity().empty());
  for (const auto& pod : items(given, "pods")) cluster.put_pod(pod_of(pod, given));
  for (const auto& pod : items(given, "pods")) cluster.put_pod(pod_of(pod, given));
}

TEST(SchedulerCases, AreAnswered) {
  const auto* const asked = std::getenv("DROVER_TEST_SCHEDULER_CASES");
  const auto* const answered = std::getenv("DROVER_TEST_SCHEDULER_ANSWERS");
  if (asked == nullptr || answered == nullptr) GTEST_SKIP() << "for tests/test_kube_scheduler.py";
  std::ifstream input(asked);
  std::ofstream output(answered);
  ASSERT_TRUE(input && output);
  for (std::string line; std::getline(input, line);) {
    const auto given = json::parse(line);
    auto cluster = cluster_of(given);
    churn(cluster, given);
    json answers = json::array();
    for (const auto& pod : items(given, "incoming")) answers.push_back(answer(cluster, pod_of(pod, given)));
    output << answers << '\n';
  }
}

}  // namespace
}  // namespace drover::kube::scheduler
