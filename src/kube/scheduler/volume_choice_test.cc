#include "kube/scheduler/volume_choice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kNoVolumes = "node(s) didn't find available persistent volumes to bind";
constexpr std::string_view kTooLittle = "node(s) did not have enough free storage";

class VolumeChoice : public ::testing::Test {
 protected:
  VolumeChoice() {
    for (const auto* name : {"n1", "n2"})
      cluster.put_node(
          read_node({{"metadata", {{"name", name}, {"labels", {{"host", name}, {"zone", "z"}}}}}}).value());
    storage_class({});
  }

  void storage_class(const json& more, const char* provisioner = "disks.example") {
    json object{{"metadata", {{"name", "wait"}}},
                {"provisioner", provisioner},
                {"volumeBindingMode", "WaitForFirstConsumer"}};
    if (more.is_object()) object.update(more);
    cluster.put_storage_class(read_storage_class(object).value());
  }
  void static_only() { storage_class({}, "kubernetes.io/no-provisioner"); }

  void claim(const std::string& name, const char* size = "1Gi", const json& more = json::object(),
             const json& annotations = json::object()) {
    json spec{{"storageClassName", "wait"},
              {"accessModes", {"ReadWriteOnce"}},
              {"resources", {{"requests", {{"storage", size}}}}}};
    spec.update(more);
    cluster.put_volume_claim(
        read_volume_claim(
            {{"metadata",
              {{"name", name}, {"namespace", "n"}, {"uid", "uid-" + name}, {"annotations", annotations}}},
             {"spec", spec}})
            .value());
  }

  /// On n1 alone.
  void volume(const std::string& name, const char* size = "1Gi", const json& more = json::object(),
              const char* phase = "Available") {
    const json term = {{"matchExpressions", {{{"key", "host"}, {"operator", "In"}, {"values", {"n1"}}}}}};
    json spec{{"storageClassName", "wait"},
              {"accessModes", {"ReadWriteOnce"}},
              {"capacity", {{"storage", size}}},
              {"local", {{"path", "/x"}}},
              {"nodeAffinity", {{"required", {{"nodeSelectorTerms", {term}}}}}}};
    spec.update(more);
    cluster.put_volume(read_volume({{"metadata", {{"name", name}, {"labels", {{"disk", name}}}}},
                                    {"spec", spec},
                                    {"status", {{"phase", phase}}}})
                           .value());
  }

  /// "claim: volume", or what is said against the node.
  std::vector<std::string> on(const char* node, const std::vector<std::string>& claims = {"c"}) const {
    UnboundClaims unbound(cluster);
    for (const auto& name : claims)
      unbound.add(*cluster.volume_claim("n", name), *cluster.storage_class("wait"));
    const auto choice = unbound.choose(cluster.nodes().find(node)->second);
    std::vector<std::string> lines(choice.reasons.begin(), choice.reasons.end());
    for (const auto& decision : choice.decisions)
      lines.push_back(fmt::format("{}: {}", decision.claim, decision.volume));
    return lines;
  }

  Cluster cluster;
};

TEST_F(VolumeChoice, TakesTheSmallestThatWillDo) {
  static_only();
  claim("c", "2Gi");
  volume("large", "8Gi");
  volume("small", "1Gi");
  volume("right", "4Gi");
  EXPECT_THAT(on("n1"), ElementsAre("c: right"));
  EXPECT_THAT(on("n2"), ElementsAre(kNoVolumes));
}

TEST_F(VolumeChoice, WantsAllThatAClaimAsksFor) {
  static_only();
  claim("c");
  for (const auto& [name, spec] : std::map<std::string, json>{
           {"class", {{"storageClassName", "other"}}},
           {"modes", {{"accessModes", {"ReadOnlyMany"}}}},
           {"block", {{"volumeMode", "Block"}}},
           {"attributes", {{"volumeAttributesClassName", "fast"}}},
           {"taken", {{"claimRef", {{"namespace", "n"}, {"name", "other"}}}}},
           {"namesake", {{"claimRef", {{"namespace", "n"}, {"name", "c"}, {"uid", "another"}}}}}})
    volume(name, "1Gi", spec);
  volume("released", "1Gi", json::object(), "Released");
  EXPECT_THAT(on("n1"), ElementsAre(kNoVolumes));
  volume("right");
  EXPECT_THAT(on("n1"), ElementsAre("c: right"));
  claim("c", "1Gi", {{"selector", {{"matchLabels", {{"disk", "wanted"}}}}}});
  EXPECT_THAT(on("n1"), ElementsAre(kNoVolumes));
  volume("wanted", "5Gi");
  EXPECT_THAT(on("n1"), ElementsAre("c: wanted"));
}

TEST_F(VolumeChoice, OneThatIsMeantForTheClaimIsTaken) {
  claim("c");
  volume("free");
  volume("meant", "9Gi",
         {{"claimRef", {{"namespace", "n"}, {"name", "c"}}}, {"accessModes", {"ReadOnlyMany"}}}, "Pending");
  EXPECT_THAT(on("n1"), ElementsAre("c: meant"));
  EXPECT_THAT(on("n2"), ElementsAre("c: "));
}

TEST_F(VolumeChoice, SeveralClaimsHaveAVolumeEach) {
  static_only();
  claim("big", "3Gi");
  claim("tiny", "1Gi");
  volume("one", "2Gi");
  volume("two", "3Gi");
  EXPECT_THAT(on("n1", {"big", "tiny"}), ElementsAre("tiny: one", "big: two"));
  cluster.remove_volume("two");
  EXPECT_THAT(on("n1", {"big", "tiny"}), ElementsAre(kNoVolumes));
}

TEST_F(VolumeChoice, ElseOneIsMadeWhereItsClassHasThem) {
  claim("c");
  EXPECT_THAT(on("n1"), ElementsAre("c: "));
  volume("local");
  EXPECT_THAT(on("n1"), ElementsAre("c: local"));
  EXPECT_THAT(on("n2"), ElementsAre("c: "));
  const json there = {{"matchLabelExpressions", {{{"key", "host"}, {"values", {"n2"}}}}}};
  storage_class({{"allowedTopologies", {there}}});
  cluster.remove_volume("local");
  EXPECT_THAT(on("n1"), ElementsAre(kNoVolumes));
  EXPECT_THAT(on("n2"), ElementsAre("c: "));
}

TEST_F(VolumeChoice, AsksWhereThereIsRoom) {
  claim("c", "4Gi");
  cluster.put_csi_driver(
      read_csi_driver({{"metadata", {{"name", "disks.example"}}}, {"spec", {{"storageCapacity", true}}}})
          .value());
  EXPECT_THAT(on("n1"), ElementsAre(kTooLittle));
  json capacity{{"metadata", {{"name", "p"}, {"namespace", "s"}}},
                {"storageClassName", "wait"},
                {"nodeTopology", {{"matchLabels", {{"host", "n1"}}}}},
                {"capacity", "3Gi"}};
  const auto put = [&] { cluster.put_storage_capacity(read_storage_capacity(capacity).value()); };
  put();
  EXPECT_THAT(on("n1"), ElementsAre(kTooLittle));
  capacity["capacity"] = "4Gi";
  put();
  EXPECT_THAT(on("n1"), ElementsAre("c: "));
  EXPECT_THAT(on("n2"), ElementsAre(kTooLittle));
  capacity["maximumVolumeSize"] = "2Gi";
  put();
  EXPECT_THAT(on("n1"), ElementsAre(kTooLittle));
  cluster.remove_csi_driver("disks.example");
  EXPECT_THAT(on("n2"), ElementsAre("c: "));
}

TEST_F(VolumeChoice, WhatIsUnderWayForANodeStaysThere) {
  claim("c", "1Gi", json::object(), {{"volume.kubernetes.io/selected-node", "n2"}});
  volume("local");
  EXPECT_THAT(on("n1"), ElementsAre(kNoVolumes));
  EXPECT_THAT(on("n2"), ElementsAre("c: "));
}

TEST_F(VolumeChoice, WhatWasDecidedForOthersCounts) {
  static_only();
  claim("c");
  claim("d");
  volume("local");
  const VolumeDecision decision{"n", "d", "uid-d", "local"};
  cluster.keep(decision, "n1");
  cluster.keep(decision, "n1");
  EXPECT_THAT(on("n1"), ElementsAre(kNoVolumes));
  EXPECT_THAT(on("n1", {"d"}), ElementsAre("d: local"));
  cluster.drop(decision);
  EXPECT_THAT(on("n1"), ElementsAre(kNoVolumes));
  cluster.drop(decision);
  EXPECT_THAT(on("n1"), ElementsAre("c: local"));
  storage_class({});
  cluster.remove_volume("local");
  cluster.keep({"n", "c", "uid-c", ""}, "n2");
  EXPECT_THAT(on("n1"), ElementsAre(kNoVolumes));
  EXPECT_THAT(on("n2"), ElementsAre("c: "));
}

TEST_F(VolumeChoice, ACsiVolumeIsForNodesThatHaveItsDriver) {
  static_only();
  claim("c");
  volume("far", "1Gi", {{"csi", {{"driver", "ebs"}}}, {"local", nullptr}, {"nodeAffinity", nullptr}});
  EXPECT_THAT(on("n2"), ElementsAre(kNoVolumes));
  cluster.put_csi_drivers({"n2", {{"ebs", false}}});
  EXPECT_THAT(on("n2"), ElementsAre("c: far"));
  cluster.put_csi_drivers({"n2", {{"ebs", true}}});
  EXPECT_THAT(on("n2"), ElementsAre(kNoVolumes));
}

}  // namespace
}  // namespace drover::kube::scheduler
