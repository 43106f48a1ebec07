#include "kube/scheduler/pod.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

json pod_with(const json& spec, const json& labels = json::object()) {
  return {{"metadata", {{"name", "p"}, {"namespace", "n"}, {"uid", "u"}, {"labels", labels}}},
          {"spec", spec}};
}

PodTemplate read(const json& spec, const json& labels = json::object()) {
  const auto pod = read_pod(pod_with(spec, labels));
  EXPECT_TRUE(pod);
  return pod ? *pod->made_from : PodTemplate();
}

TEST(ReadPod, KeepsWhatASchedulerNeeds) {
  auto object = pod_with({{"nodeName", "n1"},
                          {"priority", 7},
                          {"schedulerName", "drover"},
                          {"os", {{"name", "linux"}}},
                          {"schedulingGates", {{{"name", "wait"}}}},
                          {"resourceClaims", {{{"name", "gpu"}}}}});
  object["metadata"]["ownerReferences"] = {{{"uid", "x"}}, {{"uid", "o"}, {"controller", true}}};
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  object["status"] = {{"phase", "Failed"}};
  const auto pod = read_pod(object);
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->uid, "u");
  EXPECT_EQ(pod->owner_uid, "o");
  EXPECT_EQ(pod->node_name, "n1");
  EXPECT_TRUE(pod->ended && pod->terminating);
  const auto& made = *pod->made_from;
  EXPECT_EQ(made.priority, 7);
  EXPECT_EQ(made.operating_system, "linux");
  EXPECT_EQ(made.scheduling_gates, std::vector<std::string>{"wait"});
  EXPECT_EQ(made.resource_claims, std::vector<std::string>{"gpu"});
}

TEST(ReadPod, RefusesOnlyNonsense) {
  EXPECT_TRUE(read_pod(pod_with(nullptr)));
  for (const auto& wrong :
       {json(), json::array(), json("p"), json::object(), pod_with(1), pod_with({{"containers", "x"}}),
        pod_with({{"containers", {1}}}), pod_with({{"nodeName", 1}}), pod_with({}, {{"a", 1}}),
        pod_with({{"priority", 1.5}})}) {
    const auto pod = read_pod(wrong);
    ASSERT_FALSE(pod) << wrong;
    EXPECT_EQ(pod.error().kind, ErrorKind::kInvalid);
    EXPECT_TRUE(pod.error().message.starts_with("the pod '")) << pod.error().message;
  }
}

TEST(ReadPod, TakesPortsOfWhatRunsOn) {
  const auto container = [](std::int64_t port, json more = json::object()) {
    more["ports"] = {{{"containerPort", 1}, {"hostPort", port}}};
    return more;
  };
  const auto made = read({{"containers", {container(80), container(0)}},
                          {"initContainers", {container(81), container(82, {{"restartPolicy", "Always"}})}}});
  EXPECT_EQ(made.ports, (std::vector<HostPort>{{"TCP", 82, "0.0.0.0"}, {"TCP", 80, "0.0.0.0"}}));
}

TEST(ReadPod, SaysInWordsWhatIsNotSupported) {
  const auto made = read({{"volumes",
                           {{{"name", "a"}, {"emptyDir", json::object()}},
                            {{"name", "b"}, {"rbd", json::object()}},
                            {{"name", "c"}, {"rbd", json::object()}},
                            {{"name", "d"}, {"ephemeral", json::object()}},
                            {{"name", "e"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}}}});
  EXPECT_EQ(made.unsupported, (std::vector<std::string>{"uses volumes of the kind 'ephemeral'",
                                                        "uses volumes of the kind 'rbd'"}));
  EXPECT_EQ(made.volume_claims, std::vector<std::string>{"data"});
}

TEST(ReadPod, TakesTheNamespaceOfAPodForTermsThatNameNone) {
  const auto term = [](json more) {
    more["topologyKey"] = "zone";
    return json{
        {"affinity", {{"podAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", {more}}}}}}};
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(read(term(json::object())).affinity.at(0).namespaces, Names{"n"});
  EXPECT_EQ(read(term({{"namespaces", {"m"}}})).affinity.at(0).namespaces, Names{"m"});
  const auto everywhere = read(term({{"namespaceSelector", json::object()}})).affinity.at(0);
  EXPECT_TRUE(everywhere.namespaces.empty() && everywhere.namespace_selector.everything());
}

TEST(ReadPod, TakesOnlySpreadsThatMustHold) {
  const auto spread = [](const char* when) {
    return json{{"topologyKey", "zone"},
                {"maxSkew", 2},
                {"whenUnsatisfiable", when},
                {"labelSelector", json::object()},
                {"matchLabelKeys", {"version", "absent"}}};
  };
  const auto made = read({{"topologySpreadConstraints", {spread("ScheduleAnyway"), spread("DoNotSchedule")}}},
                         {{"version", "1"}});
  ASSERT_EQ(made.spread.size(), 1U);
  const auto& constraint = made.spread.front();
  EXPECT_EQ(constraint.most_skew, 2);
  EXPECT_EQ(constraint.least_domains, 1);
  EXPECT_TRUE(constraint.by_node_affinity && !constraint.by_taints);
  EXPECT_EQ(constraint.selector.requirements,
            (std::vector<Requirement>{{"version", LabelOperator::kIn, {"1"}}}));
}

}  // namespace
}  // namespace drover::kube::scheduler
