#include "kube/scheduler/claims/extended_resources.h"

#include <gtest/gtest.h>

#include "kube/scheduler/claims/testing/pools.h"

namespace drover::kube::scheduler {
namespace {

using testing::json;
using testing::TestCluster;

constexpr auto* kGpu = "example.com/gpu";

TestCluster with_class() {
  TestCluster cluster;
  cluster.put_class({{"extendedResourceName", kGpu}}, "gpus");
  return cluster;
}

json container(const char* name, const json& requests, const json& more = json::object()) {
  json made{{"name", name}, {"resources", {{"requests", requests}}}};
  made.merge_patch(more);
  return made;
}

ExtendedResourceClaim claim_of(const testing::List& init, const testing::List& containers) {
  FieldReader reader;
  const auto read =
      read_container_resources(reader, {{"spec", {{"initContainers", init}, {"containers", containers}}}});
  EXPECT_TRUE(reader.status("the pod"));
  return extended_resource_claim(read, {kGpu, "example.com/unknown"}, with_class().pools);
}

std::string text_of(const ExtendedResourceClaim& claim) {
  std::string text;
  for (const auto& request : claim.spec.requests)
    text += request.name + "=" + std::to_string(request.wishes.front().count) + " ";
  for (const auto& mapping : claim.mappings) text += "| " + mapping.container + ":" + mapping.request + " ";
  return text;
}

TEST(ExtendedResources, AreRequestsOfOneClaim) {
  const auto claim =
      claim_of({}, {container("a", {{"cpu", "1"}, {kGpu, "2"}}), container("b", {{"cpu", "1"}}),
                    container("c", {{kGpu, 1}, {"aaa", "1"}, {"memory", "1Gi"}})});
  EXPECT_EQ(
      text_of(claim),
      "container-0-request-1=2 container-2-request-1=1 | a:container-0-request-1 | c:container-2-request-1 ");
  EXPECT_EQ(claim.spec.requests.front().wishes.front().device_class, "gpus");
}

TEST(ExtendedResources, OfContainersThatPassAreUsedAgain) {
  const json sidecar{{"restartPolicy", "Always"}};
  EXPECT_EQ(text_of(claim_of({container("i", {{kGpu, "1"}})}, {container("c", {{kGpu, "2"}})})),
            "container-1-request-0=2 | c:container-1-request-0 | i:container-1-request-0 ");
  EXPECT_EQ(
      text_of(claim_of({container("i", {{kGpu, "3"}}), container("j", {{kGpu, "4"}})},
                       {container("c", {{kGpu, "2"}})})),
      "container-1-request-0=2 container-2-request-0=2 | c:container-2-request-0 | i:container-2-request-0 | "
      "i:container-1-request-0 | j:container-2-request-0 | j:container-1-request-0 ");
  // A sidecar before it runs beside it.
  EXPECT_EQ(
      text_of(claim_of({container("s", {{kGpu, "1"}}, sidecar), container("i", {{kGpu, "1"}})},
                       {container("c", {{"cpu", "1"}})})),
      "container-0-request-0=1 container-1-request-0=1 | s:container-0-request-0 | i:container-1-request-0 ");
}

TEST(ExtendedResources, AreWholeAndNotNothing) {
  EXPECT_EQ(text_of(claim_of({}, {container("a", {{kGpu, "0"}}), container("b", {{kGpu, "1500m"}})})), "");
  FieldReader reader;
  read_container_resources(reader, {{"spec", {{"containers", {1}}}}});
  EXPECT_FALSE(reader.status("the pod"));
}

TEST(ExtendedResources, AreGivenByClaimWhereTheNodeOffersNone) {
  const auto cluster = with_class();
  const Resources wanted{
      .others = {{kGpu, 2}, {"example.com/other", 1}, {"deviceclass.resource.kubernetes.io/gpus", 1}}};
  Node node{.name = "n"};
  const ResourceNames both{"deviceclass.resource.kubernetes.io/gpus", kGpu};
  EXPECT_EQ(resources_by_claim(wanted, node, cluster.pools), both);
  node.allocatable.others[kGpu] = 0;
  EXPECT_EQ(resources_by_claim(wanted, node, cluster.pools), both);
  node.allocatable.others[kGpu] = 8;
  EXPECT_EQ(resources_by_claim(wanted, node, cluster.pools),
            ResourceNames{"deviceclass.resource.kubernetes.io/gpus"});
}

TEST(ExtendedResources, TheirClaimIsThePods) {
  const auto claim = claim_of({}, {container("a", {{kGpu, "2"}})});
  const auto object = to_json(claim, "ns", "p", "uid");
  EXPECT_EQ(object, json::parse(R"({
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
    "metadata": {"namespace": "ns", "generateName": "p-extended-resources-",
      "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
      "finalizers": ["resource.kubernetes.io/delete-protection"],
      "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid", "controller": true}]},
    "spec": {"devices": {"requests": [{"name": "container-0-request-0",
      "exactly": {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2}}]}}})"));
  EXPECT_EQ(claim_status(claim, "p-1"), json::parse(R"({"resourceClaimName": "p-1", "requestMappings": [
    {"containerName": "a", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}]})"));
  FieldReader reader;
  EXPECT_EQ(read_claim_spec(reader, object["spec"]), claim.spec);
}

}  // namespace
}  // namespace drover::kube::scheduler
