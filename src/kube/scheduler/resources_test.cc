#include "kube/scheduler/resources.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr ServerVersion kBefore{1, 36};
constexpr ServerVersion kNow{1, 37};

Resources requests(const json& spec, const json& status = json(), const ServerVersion* assigned = &kNow) {
  FieldReader reader;
  auto read = read_requests(reader, {{"spec", spec}, {"status", status}}, assigned);
  EXPECT_TRUE(reader.status("it"));
  return read;
}

json container(const char* name, const char* cpu) {
  return {{"name", name}, {"resources", {{"requests", {{"cpu", cpu}}}}}};
}

json sidecar(const char* name, const char* cpu) {
  auto made = container(name, cpu);
  made["restartPolicy"] = "Always";
  return made;
}

std::int64_t cpu(const std::vector<json>& init, const std::vector<json>& containers) {
  return requests({{"initContainers", init}, {"containers", containers}}).cpu;
}

TEST(Requests, AreTheSumOfContainersOrTheMostDemandingInitContainer) {
  EXPECT_EQ(cpu({}, {container("a", "1"), container("b", "500m")}), 1500);
  EXPECT_EQ(cpu({container("i", "2"), container("j", "1")}, {container("a", "1")}), 2000);
  EXPECT_EQ(cpu({container("i", "500m")}, {container("a", "1")}), 1000);
}

TEST(Requests, CountSidecarsFromWhereTheyStart) {
  EXPECT_EQ(cpu({sidecar("s", "1")}, {container("a", "1")}), 2000);
  EXPECT_EQ(cpu({sidecar("s", "1"), container("i", "2")}, {container("a", "1")}), 3000);
  EXPECT_EQ(cpu({container("i", "2"), sidecar("s", "1")}, {container("a", "500m")}), 2000);
  EXPECT_EQ(cpu({sidecar("s", "1"), container("i", "3"), sidecar("t", "1")}, {container("a", "1")}), 4000);
}

TEST(Requests, AddBeforeTheyRound) {
  EXPECT_EQ(cpu({}, {container("a", "0.5m"), container("b", "0.5m")}), 1);
  EXPECT_EQ(cpu({}, {container("a", "0.6m"), container("b", "0.6m")}), 2);
}

TEST(Requests, TakeWhatIsSaidForTheWholePodAndAddTheOverhead) {
  const json whole = {{"requests", {{"cpu", "3"}, {"hugepages-2Mi", "4Mi"}, {"nvidia.com/gpu", "7"}}}};
  const auto read =
      requests({{"resources", whole}, {"containers", {container("a", "1")}}, {"overhead", {{"cpu", "10m"}}}});
  EXPECT_EQ(read.cpu, 3010);
  EXPECT_EQ(read.others, (decltype(read.others){{"hugepages-2Mi", 4 << 20}}))
      << "GPUs are never asked for by the whole pod";
}

TEST(Requests, AreTheLargerOnesWhileResourcesChange) {
  const json spec = {{"containers", {container("a", "1")}}};
  const json status = {{"containerStatuses",
                        {{{"name", "a"},
                          {"resources", {{"requests", {{"cpu", "2"}}}}},
                          {"allocatedResources", {{"cpu", "3"}}}}}}};
  EXPECT_EQ(requests(spec, status).cpu, 3000);
  EXPECT_EQ(requests(spec, status, nullptr).cpu, 1000);
  const json larger = {{"containers", {container("a", "5")}}};
  EXPECT_EQ(requests(larger, status).cpu, 5000);
  auto infeasible = status;
  infeasible["conditions"] = {{{"type", "PodResizePending"}, {"reason", "Infeasible"}}};
  EXPECT_EQ(requests(larger, infeasible).cpu, 3000);
}

TEST(Requests, AreComparedByContainerOrByPod) {
  const json spec = {{"containers", {container("a", "1"), container("b", "1")}}};
  const auto has = [](const char* name, const char* cpu) {
    return json{{"name", name}, {"resources", {{"requests", {{"cpu", cpu}}}}}};
  };
  const json status = {{"containerStatuses", {has("a", "3"), has("b", "100m")}}};
  EXPECT_EQ(requests(spec, status, &kBefore).cpu, 4000);
  EXPECT_EQ(requests(spec, status, &kNow).cpu, 3100);
}

TEST(Requests, KnowWhichNamesAreCounted) {
  for (const auto* name : {"nvidia.com/gpu", "hugepages-1Gi", "attachable-volumes-x", "kubernetes.io/batch",
                           "deviceclass.resource.kubernetes.io/gpu"})
    EXPECT_TRUE(is_counted(name)) << name;
  for (const auto* name : {"cpu", "storage", "gpu", "requests.nvidia.com/gpu", "a/b/c", "Nvidia.com/gpu"})
    EXPECT_FALSE(is_counted(name)) << name;
}

TEST(Requests, NeitherOverflowNorVanish) {
  const json much = {{"name", "a"}, {"resources", {{"requests", {{"memory", "8Ei"}}}}}};
  EXPECT_EQ(requests({{"containers", {much, much}}}).memory, std::numeric_limits<std::int64_t>::max());
}

TEST(Requests, MustBeQuantities) {
  for (const auto& wrong : {json("x"), json("-1"), json::array(), json(true)}) {
    FieldReader reader;
    read_requests(reader, {{"spec", {{"overhead", {{"cpu", wrong}}}}}}, nullptr);
    EXPECT_FALSE(reader.status("it")) << wrong;
  }
}

}  // namespace
}  // namespace drover::kube::scheduler
