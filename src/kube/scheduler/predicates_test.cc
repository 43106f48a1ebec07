#include "kube/scheduler/predicates.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;
using Reasons = std::vector<std::string_view>;

/// A cluster that is built object by object, as YAML would be.
class PredicatesTest : public ::testing::Test {
 protected:
  void node(const std::string& name, json labels = json::object(), json spec = json::object(),
            json status = json::object()) {
    labels["host"] = name;
    if (!status.contains("allocatable"))
      status["allocatable"] = {{"cpu", "4"}, {"memory", "4Gi"}, {"pods", "10"}};
    const auto read =
        read_node({{"metadata", {{"name", name}, {"labels", labels}}}, {"spec", spec}, {"status", status}});
    ASSERT_TRUE(read);
    cluster.put_node(*read);
  }

  static Pod pod(json spec, const json& labels = json::object(), const std::string& name = "new",
                 const std::string& name_space = "n") {
    const auto read = read_pod(
        {{"metadata", {{"name", name}, {"namespace", name_space}, {"uid", name}, {"labels", labels}}},
         {"spec", std::move(spec)}});
    EXPECT_TRUE(read);
    return read.value_or(Pod());
  }

  void run(const std::string& name, const std::string& on, json spec = json::object(),
           const json& labels = json::object(), const std::string& name_space = "n") {
    spec["nodeName"] = on;
    cluster.put_pod(pod(std::move(spec), labels, name, name_space));
  }

  Reasons reasons(const Pod& pod, std::string_view node) {
    const Predicates predicates(cluster, pod);
    const auto verdict = predicates.check(cluster.nodes().find(node)->second);
    said.assign(verdict.reasons.begin(), verdict.reasons.end());
    return {said.begin(), said.end()};
  }
  std::string reason(const Pod& pod, std::string_view node) {
    const auto all = reasons(pod, node);
    EXPECT_LE(all.size(), 1U);
    return all.empty() ? "" : std::string(all.front());
  }

  Cluster cluster;
  std::vector<std::string> said;
};

json required(const char* kind, json terms) {
  return {{"affinity", {{kind, {{"requiredDuringSchedulingIgnoredDuringExecution", std::move(terms)}}}}}};
}

json near(const char* kind, const char* key, const json& labels) {
  return required(kind, json::array({{{"topologyKey", key}, {"labelSelector", {{"matchLabels", labels}}}}}));
}

constexpr auto* kNotNear = "node(s) didn't match pod affinity rules";
constexpr auto* kNear = "node(s) didn't match pod anti-affinity rules";
constexpr auto* kShunned = "node(s) didn't satisfy existing pods anti-affinity rules";

TEST(Tolerations, AreTheTableOfTheirDocumentation) {
  const Taint taint{"gpu", "a100", "NoSchedule"};
  const auto tolerated = [&](Toleration toleration) { return tolerates({std::move(toleration)}, taint); };
  EXPECT_TRUE(tolerated({"gpu", "Equal", "a100", "NoSchedule"}));
  EXPECT_TRUE(tolerated({"gpu", "Equal", "a100", ""}));
  EXPECT_TRUE(tolerated({"gpu", "Exists", "", "NoSchedule"}));
  EXPECT_TRUE(tolerated({"", "Exists", "", ""}));
  EXPECT_FALSE(tolerated({"gpu", "Equal", "h100", ""}));
  EXPECT_FALSE(tolerated({"gpu", "Equal", "a100", "NoExecute"}));
  EXPECT_FALSE(tolerated({"cpu", "Exists", "", ""}));
  EXPECT_FALSE(tolerated({"gpu", "Gt", "1", ""}));
  EXPECT_EQ(untolerated({{"x", "", "PreferNoSchedule"}}, {}), nullptr);
  EXPECT_NE(untolerated({{"x", "", "NoExecute"}}, {}), nullptr);
}

TEST_F(PredicatesTest, NodesThatTakeNothing) {
  node("n1", {}, {{"unschedulable", true}});
  node("n2", {}, {{"taints", {{{"key", "k"}, {"effect", "NoSchedule"}}}}});
  EXPECT_EQ(reason(pod({}), "n1"), "node(s) were unschedulable");
  EXPECT_EQ(reason(pod({}), "n2"), "node(s) had untolerated taint(s)");
  const auto tolerant = pod({{"tolerations", {{{"operator", "Exists"}}}}});
  EXPECT_EQ(reason(tolerant, "n1"), "");
  EXPECT_EQ(reason(tolerant, "n2"), "");
}

TEST_F(PredicatesTest, NodesThatAreNotMeant) {
  node("n1", {{"zone", "z1"}});
  node("n2");
  EXPECT_EQ(reason(pod({{"nodeName", "n1"}}), "n2"), "node(s) didn't match the requested node name");
  EXPECT_EQ(reason(pod({{"nodeSelector", {{"zone", "z1"}}}}), "n2"),
            "node(s) didn't match Pod's node affinity/selector");
  EXPECT_EQ(reason(pod({{"nodeSelector", {{"zone", "z1"}}}}), "n1"), "");
  EXPECT_EQ(reason(pod(required("nodeAffinity", {{"nodeSelectorTerms", json::array()}})), "n1"),
            "node(s) didn't match Pod's node affinity/selector");
}

TEST_F(PredicatesTest, PortsThatAreTaken) {
  node("n1");
  const auto with = [](json port) {
    port["hostPort"] = 80;
    port["containerPort"] = 1;
    return json{{"containers", {{{"name", "a"}, {"ports", {std::move(port)}}}}}};
  };
  run("p", "n1", with({{"hostIP", "10.0.0.1"}}));
  constexpr auto* kTaken = "node(s) didn't have free ports for the requested pod ports";
  EXPECT_EQ(reason(pod(with({{"hostIP", "10.0.0.1"}})), "n1"), kTaken);
  EXPECT_EQ(reason(pod(with(json::object())), "n1"), kTaken);
  EXPECT_EQ(reason(pod(with({{"hostIP", "10.0.0.2"}})), "n1"), "");
  EXPECT_EQ(reason(pod(with({{"protocol", "UDP"}})), "n1"), "");
  cluster.remove_pod("p");
  EXPECT_EQ(reason(pod(with(json::object())), "n1"), "");
}

TEST_F(PredicatesTest, ResourcesThatAreShort) {
  node("n1", {}, {},
       {{"allocatable", {{"cpu", "2"}, {"memory", "1Gi"}, {"pods", "1"}, {"nvidia.com/gpu", "2"}}}});
  const auto wants = [](json requests) {
    return json{{"containers", {{{"name", "a"}, {"resources", {{"requests", std::move(requests)}}}}}}};
  };
  EXPECT_EQ(reason(pod(wants({{"cpu", "2"}, {"nvidia.com/gpu", "2"}})), "n1"), "");
  run("p", "n1", wants({{"cpu", "1"}, {"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(
      reasons(
          pod(wants(
              {{"cpu", "1500m"}, {"nvidia.com/gpu", "2"}, {"memory", "2Gi"}, {"ephemeral-storage", "1"}})),
          "n1"),
      (Reasons{"Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage",
               "Insufficient nvidia.com/gpu"}));
  cluster.put_pod(pod({{"nodeName", "n2"}}, {}, "p"));
  EXPECT_EQ(reason(pod(wants({{"cpu", "1500m"}})), "n1"), "") << "it is on another node by now";
}

TEST_F(PredicatesTest, SumsThatOverflow) {
  node("n1");
  const json much = {{"containers", {{{"name", "a"}, {"resources", {{"requests", {{"memory", "7Ei"}}}}}}}}};
  run("p", "n1", much);
  run("q", "n1", much);
  cluster.remove_pod("q");
  const json little = {{"containers", {{{"name", "a"}, {"resources", {{"requests", {{"memory", "1"}}}}}}}}};
  EXPECT_EQ(reason(pod(little), "n1"), "Insufficient memory");
  cluster.remove_pod("p");
  EXPECT_EQ(reason(pod(little), "n1"), "");
}

TEST_F(PredicatesTest, ResourcesThatAreGivenByClaim) {
  node("n1");
  node("n2", {}, {}, {{"allocatable", {{"pods", "9"}, {"nvidia.com/gpu", "1"}}}});
  const auto wants = [](const char* resource) {
    const json requests = {{resource, "2"}};
    return pod({{"containers", {{{"name", "a"}, {"resources", {{"requests", requests}}}}}}});
  };
  EXPECT_EQ(reason(wants("nvidia.com/gpu"), "n1"), "Insufficient nvidia.com/gpu");
  cluster.put_device_class("gpu", "nvidia.com/gpu");
  EXPECT_EQ(reason(wants("nvidia.com/gpu"), "n1"), "") << "the claim says whether it can be had";
  EXPECT_EQ(reason(wants("nvidia.com/gpu"), "n2"), "Insufficient nvidia.com/gpu");
  constexpr auto* kOwn = "deviceclass.resource.kubernetes.io/gpu";
  EXPECT_EQ(reason(wants(kOwn), "n1"), "");
  cluster.remove_device_class("gpu");
  EXPECT_EQ(reason(wants("nvidia.com/gpu"), "n1"), "Insufficient nvidia.com/gpu");
}

TEST_F(PredicatesTest, PodsThatWantToBeNear) {
  node("n1", {{"zone", "z1"}});
  node("n2", {{"zone", "z2"}});
  node("n3");
  run("p", "n1", json::object(), {{"app", "db"}});
  run("other", "n2", json::object(), {{"app", "db"}}, "elsewhere");
  const auto wants = pod(near("podAffinity", "zone", {{"app", "db"}}));
  EXPECT_EQ(reason(wants, "n1"), "");
  EXPECT_EQ(reason(wants, "n2"), kNotNear);
  EXPECT_EQ(reason(wants, "n3"), kNotNear);
  const auto two = required(
      "podAffinity",
      json::array({{{"topologyKey", "zone"}, {"labelSelector", {{"matchLabels", {{"app", "db"}}}}}},
                   {{"topologyKey", "host"}, {"labelSelector", {{"matchLabels", {{"tier", "x"}}}}}}}));
  run("q", "n1", json::object(), {{"tier", "x"}});
  EXPECT_EQ(reason(pod(two), "n1"), kNotNear) << "one pod must be what all terms ask for";
  run("q", "n1", json::object(), {{"tier", "x"}, {"app", "db"}});
  EXPECT_EQ(reason(pod(two), "n1"), "");
}

TEST_F(PredicatesTest, TheFirstOfPodsThatWantToBeTogether) {
  node("n1", {{"zone", "z1"}});
  node("n2");
  const auto first = pod(near("podAffinity", "zone", {{"app", "web"}}), {{"app", "web"}});
  EXPECT_EQ(reason(first, "n1"), "");
  EXPECT_EQ(reason(first, "n2"), kNotNear);
  EXPECT_EQ(reason(pod(near("podAffinity", "zone", {{"app", "web"}})), "n1"), kNotNear);
}

TEST_F(PredicatesTest, PodsThatWantToBeApart) {
  node("n1", {{"zone", "z1"}});
  node("n2", {{"zone", "z1"}});
  node("n3");
  run("p", "n1", near("podAntiAffinity", "zone", {{"app", "web"}}), {{"app", "web"}});
  const auto web = pod(json::object(), {{"app", "web"}});
  EXPECT_EQ(reason(web, "n2"), kShunned) << "also of a pod that asks for nothing";
  EXPECT_EQ(reason(web, "n3"), "");
  EXPECT_EQ(reason(pod(near("podAntiAffinity", "zone", {{"app", "web"}})), "n2"), kNear);
  node("n1", {{"zone", "z3"}});
  EXPECT_EQ(reason(web, "n2"), "") << "the node has moved, with its pods";
  cluster.remove_node("n1");
  node("n4", {{"zone", "z3"}});
  EXPECT_EQ(reason(web, "n4"), "");
}

TEST_F(PredicatesTest, PodsOfNamespacesByTheirLabels) {
  node("n1");
  cluster.put_namespace("red", {{"team", "red"}});
  const auto apart = required("podAntiAffinity",
                              json::array({{{"topologyKey", "host"},
                                            {"labelSelector", json::object()},
                                            {"namespaceSelector", {{"matchLabels", {{"team", "red"}}}}}}}));
  run("p", "n1", apart);
  EXPECT_EQ(reason(pod({}, {}, "new", "red"), "n1"), kShunned);
  EXPECT_EQ(reason(pod({}), "n1"), "");
  cluster.put_namespace("red", {});
  EXPECT_EQ(reason(pod({}, {}, "new", "red"), "n1"), "");
}

TEST_F(PredicatesTest, PodsThatAreSpread) {
  node("n1", {{"zone", "z1"}});
  node("n2", {{"zone", "z2"}}, {{"taints", {{{"key", "k"}, {"effect", "NoSchedule"}}}}});
  node("n3");
  run("p", "n1", json::object(), {{"app", "web"}});
  const auto spread = [](json more) {
    json constraint = {{"topologyKey", "zone"},
                       {"maxSkew", 1},
                       {"whenUnsatisfiable", "DoNotSchedule"},
                       {"labelSelector", {{"matchLabels", {{"app", "web"}}}}}};
    constraint.update(more);
    return pod({{"topologySpreadConstraints", {constraint}}}, {{"app", "web"}});
  };
  constexpr auto* kSkewed = "node(s) didn't match pod topology spread constraints";
  EXPECT_EQ(reason(spread(json::object()), "n1"), kSkewed);
  EXPECT_EQ(reason(spread({{"maxSkew", 2}}), "n1"), "");
  EXPECT_EQ(reason(spread({{"nodeTaintsPolicy", "Honor"}}), "n1"), "")
      << "the other zone does not count then";
  EXPECT_EQ(reason(spread({{"nodeTaintsPolicy", "Honor"}, {"minDomains", 2}}), "n1"), kSkewed);
  EXPECT_EQ(reason(spread(json::object()), "n3"), std::string(kSkewed) + " (missing required label)");
}

TEST_F(PredicatesTest, FeaturesThatANodeMustDeclare) {
  node("n1");
  node("n2", {}, {}, {{"declaredFeatures", {"RestartAllContainersOnContainerExits"}}});
  const auto wants = pod(
      {{"containers", {{{"name", "a"}, {"restartPolicyRules", {{{"action", "RestartAllContainers"}}}}}}}});
  EXPECT_EQ(reason(wants, "n1"), "node(s) didn't match Pod's required features");
  EXPECT_EQ(reason(wants, "n2"), "");
}

class VolumePredicatesTest : public PredicatesTest {
 protected:
  void SetUp() override {
    node("n1", {{"topology.kubernetes.io/zone", "z1"}});
    node("n2", {{"topology.kubernetes.io/zone", "z2"}});
    claim({{"volumeName", "v"}});
    volume({{"nfs", json::object()}});
  }
  void claim(const json& spec, json metadata = json::object()) {
    metadata["name"] = "c";
    metadata["namespace"] = "n";
    if (spec.contains("volumeName")) metadata["annotations"] = {{"pv.kubernetes.io/bind-completed", "yes"}};
    cluster.put_volume_claim(read_volume_claim({{"metadata", metadata}, {"spec", spec}}).value());
  }
  void volume(const json& spec, const json& labels = json::object()) {
    cluster.put_volume(
        read_volume({{"metadata", {{"name", "v"}, {"labels", labels}}}, {"spec", spec}}).value());
  }
  static json uses(const char* claim) {
    return {{"volumes", {{{"name", "x"}, {"persistentVolumeClaim", {{"claimName", claim}}}}}}};
  }
};

TEST_F(VolumePredicatesTest, ReachTheNodesThatTheyName) {
  EXPECT_EQ(reason(pod(uses("c")), "n2"), "");
  volume({{"nfs", json::object()}}, {{"failure-domain.beta.kubernetes.io/zone", "z1__z3"}});
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "");
  EXPECT_EQ(reason(pod(uses("c")), "n2"), "node(s) had no available volume zone");
  const json term = {{"matchExpressions", {{{"key", "host"}, {"operator", "In"}, {"values", {"n1"}}}}}};
  volume({{"local", json::object()}, {"nodeAffinity", {{"required", {{"nodeSelectorTerms", {term}}}}}}});
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "");
  EXPECT_EQ(reason(pod(uses("c")), "n2"), "node(s) didn't match PersistentVolume's node affinity");
  cluster.remove_volume("v");
  EXPECT_EQ(reason(pod(uses("c")), "n1"),
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
}

TEST_F(VolumePredicatesTest, BelongToOnePodWhereTheySaySo) {
  claim({{"volumeName", "v"}, {"accessModes", {"ReadWriteOncePod"}}});
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "");
  run("p", "n2", uses("c"));
  EXPECT_TRUE(reason(pod(uses("c")), "n1").ends_with("already in-use by another pod"));
}

TEST_F(VolumePredicatesTest, AreRefusedInWordsWhenWeCannotDecide) {
  EXPECT_EQ(reason(pod(uses("none")), "n1"), "persistentvolumeclaim \"none\" not found");
  claim({{"volumeName", "v"}}, {{"deletionTimestamp", "2026-01-01T00:00:00Z"}});
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "persistentvolumeclaim \"c\" is being deleted");
  claim(json::object());
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "pod has unbound immediate PersistentVolumeClaims");
  claim({{"volumeName", "v"}});
  volume({{"rbd", json::object()}});
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "uses the PersistentVolume 'v' of the kind 'rbd'");
  volume({{"csi", {{"driver", "ebs"}}}});
  EXPECT_EQ(reason(pod(uses("c")), "n2"), "uses volumes of 'ebs', of which its node has no driver");
  cluster.put_csi_drivers(
      read_csi_node(
          {{"metadata", {{"name", "n1"}}},
           {"spec", {{"drivers", {{{"name", "ebs"}, {"allocatable", {{"count", 4}}}}, {{"name", "nfs"}}}}}}})
          .value());
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "uses volumes of 'ebs', of which its node can have only so many");
  // The volume that is to be made will be one of them, whatever is known of the driver.
  cluster.put_storage_class(read_storage_class({{"metadata", {{"name", "fast"}}},
                                                {"provisioner", "ebs"},
                                                {"volumeBindingMode", "WaitForFirstConsumer"}})
                                .value());
  claim({{"storageClassName", "fast"}});
  EXPECT_EQ(reason(pod(uses("c")), "n1"), "uses volumes of 'ebs', of which its node can have only so many");
  EXPECT_EQ(reason(pod(uses("c")), "n2"), "");
  claim({{"volumeName", "v"}});
  cluster.put_csi_drivers({"n2", {{"ebs", false}}});
  EXPECT_EQ(reason(pod(uses("c")), "n2"), "");
  const auto verdict = Predicates(cluster, pod(uses("c"))).check(cluster.nodes().find("n1")->second);
  EXPECT_EQ(verdict.predicate, Predicate::kSupported);
}

TEST_F(PredicatesTest, PodsOfOneTemplateShareIt) {
  node("n1");
  for (const auto* name : {"a", "b"})
    run(name, "n1", near("podAntiAffinity", "zone", {{"app", "web"}}), {{"app", "web"}});
  const auto& pods = cluster.nodes().find("n1")->second.pods;
  EXPECT_EQ(pods.at("a")->made_from, pods.at("b")->made_from);
  EXPECT_EQ(pods.at("a")->labels, pods.at("b")->labels);
}

}  // namespace
}  // namespace drover::kube::scheduler
