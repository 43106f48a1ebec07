#include "kube/scheduler/gangs/member.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/scheduler/gangs/group.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

json pod_of(const json& labels, const json& annotations = json::object(), const json& controller = nullptr) {
  json pod = {
      {"metadata", {{"name", "p"}, {"namespace", "team"}, {"labels", labels}, {"annotations", annotations}}},
      {"spec", json::object()}};
  if (!controller.is_null()) {
    pod["metadata"]["ownerReferences"] = json::array({controller});
    pod["metadata"]["ownerReferences"][0]["controller"] = true;
  }
  return pod;
}

GangMember member_of(const json& pod) {
  const auto member = read_gang_member(pod);
  EXPECT_TRUE(member) << member.error().message;
  EXPECT_TRUE(member && *member) << pod;
  return member && *member ? **member : GangMember();
}

std::string refusal_of(const json& pod) {
  const auto member = read_gang_member(pod);
  return member ? "" : member.error().message;
}

struct Source {
  json pod;
  GangKind kind;
  std::string name;
  std::string object;  // "group/plural/name", or "" when the pod says the size
};

TEST(GangMember, IsFoundInAllTheWaysThatPeopleUse) {
  const json job = {{"kind", "Job"}, {"apiVersion", "batch/v1"}, {"name", "j"}};
  const json torch = {{"kind", "PyTorchJob"}, {"apiVersion", "kubeflow.org/v1"}, {"name", "t"}};
  auto native = pod_of({});
  native["spec"]["schedulingGroup"] = {{"podGroupName", "workers"}};
  const std::vector<Source> sources = {
      {native, GangKind::kPodGroup, "workers", "scheduling.k8s.io/podgroups/workers"},
      {pod_of({{"drover/gang", "a"}}, {{"drover/gang-size", "8"}}), GangKind::kDrover, "a", ""},
      {pod_of({}, {{"drover/gang-size", "8"}}, job), GangKind::kDrover, "Job/j", ""},
      {pod_of({{"scheduling.x-k8s.io/pod-group", "a"}}), GangKind::kCoscheduling, "a",
       "scheduling.x-k8s.io/podgroups/a"},
      {pod_of({}, {{"scheduling.k8s.io/group-name", "a"}}), GangKind::kVolcano, "a",
       "scheduling.volcano.sh/podgroups/a"},
      {pod_of({},
              {{"scheduling.volcano.sh/group-name", "a"}, {"scheduling.volcano.sh/group-min-member", "8"}}),
       GangKind::kVolcano, "a", ""},
      {pod_of({}, {{"pod-group-name", "a"}}), GangKind::kKai, "a", "scheduling.run.ai/podgroups/a"},
      {pod_of({{"kueue.x-k8s.io/pod-group-name", "a"}}, {{"kueue.x-k8s.io/pod-group-total-count", "8"}}),
       GangKind::kKueue, "a", ""},
      {pod_of({{"leaderworkerset.sigs.k8s.io/name", "llm"},
               {"leaderworkerset.sigs.k8s.io/group-key", "689ce1b"},
               {"leaderworkerset.sigs.k8s.io/group-index", "2"}}),
       GangKind::kLeaderWorkerSet, "llm-2", "leaderworkerset.x-k8s.io/leaderworkersets/llm"},
      {pod_of({{"jobset.sigs.k8s.io/jobset-name", "set"}}, {}, job), GangKind::kJobSet, "set",
       "jobset.x-k8s.io/jobsets/set"},
      {pod_of({{"jobset.sigs.k8s.io/jobset-name", "set"}}, {{"drover/gang-of", "job"}}, job), GangKind::kJob,
       "j", "batch/jobs/j"},
      {pod_of({}, {{"drover/gang-of", "job"}}, job), GangKind::kJob, "j", "batch/jobs/j"},
      {pod_of({{"training.kubeflow.org/job-name", "t"}}, {}, torch), GangKind::kKubeflow, "t",
       "kubeflow.org/pytorchjobs/t"}};
  for (const auto& source : sources) {
    const auto member = member_of(source.pod);
    EXPECT_EQ(member.gang, (GangIdentity{source.kind, "team", source.name})) << source.pod;
    EXPECT_EQ(member.size, source.object.empty() ? std::optional(8) : std::nullopt) << source.pod;
    if (!source.object.empty()) {
      ASSERT_TRUE(member.object) << source.pod;
      EXPECT_EQ(
          member.object->resource.group + "/" + member.object->resource.plural + "/" + member.object->name,
          source.object);
    }
  }
}

TEST(GangMember, IsNoneWithoutAnyOfThem) {
  const json job = {{"kind", "Job"}, {"apiVersion", "batch/v1"}, {"name", "j"}};
  const json own = {{"kind", "PyTorchJob"}, {"apiVersion", "other.org/v1"}, {"name", "t"}};
  const json none = {{"drover/gang-of", "none"}};
  for (const auto& pod :
       {json(), pod_of({}), pod_of({}, {}, job), pod_of({{"training.kubeflow.org/job-name", "t"}}),
        pod_of({{"training.kubeflow.org/job-name", "t"}}, {}, own),
        pod_of({{"jobset.sigs.k8s.io/jobset-name", "set"}}, none, job)}) {
    const auto member = read_gang_member(pod);
    ASSERT_TRUE(member) << pod;
    EXPECT_FALSE(*member) << pod;
  }
}

TEST(GangMember, IsOfTheFirstWayThatMatches) {
  auto pod = pod_of({{"drover/gang", "ours"}, {"scheduling.x-k8s.io/pod-group", "theirs"}},
                    {{"drover/gang-size", "2"}});
  EXPECT_EQ(member_of(pod).gang.name, "ours");
  pod["spec"]["schedulingGroup"] = {{"podGroupName", "native"}};
  EXPECT_EQ(member_of(pod).gang.name, "native");
}

TEST(GangMember, HasARankWhereItIsKnown) {
  using Rank = std::vector<std::int64_t>;
  const json size = {{"drover/gang-size", "2"}};
  EXPECT_EQ(member_of(pod_of({{"drover/gang", "a"}}, size)).rank, Rank());
  EXPECT_EQ(member_of(pod_of({{"drover/gang", "a"}, {"drover/gang-rank", "3"}}, size)).rank, Rank{3});
  EXPECT_EQ(
      member_of(pod_of({{"drover/gang", "a"}, {"batch.kubernetes.io/job-completion-index", "4"}}, size)).rank,
      Rank{4});
  EXPECT_EQ(member_of(pod_of({{"jobset.sigs.k8s.io/jobset-name", "s"},
                              {"jobset.sigs.k8s.io/job-global-index", "1"}},
                             {{"batch.kubernetes.io/job-completion-index", "5"}}))
                .rank,
            (Rank{1, 5}));
  const json torch = {{"kind", "PyTorchJob"}, {"apiVersion", "kubeflow.org/v1"}, {"name", "t"}};
  for (const auto& [role, rank] : {std::pair("master", Rank{0, 0}), std::pair("worker", Rank{1, 0})})
    EXPECT_EQ(member_of(pod_of({{"training.kubeflow.org/job-name", "t"},
                                {"training.kubeflow.org/replica-type", role},
                                {"training.kubeflow.org/replica-index", "0"}},
                               {}, torch))
                  .rank,
              rank);
}

TEST(GangMember, KeepsPartsArrangementAndSuccess) {
  auto pod = pod_of({{"kai.scheduler/subgroup-name", "prefill"}},
                    {{"pod-group-name", "a"}, {"drover/gang-arrangement", "spread"}});
  pod["status"]["phase"] = "Succeeded";
  const auto member = member_of(pod);
  EXPECT_EQ(member.subgroup, "prefill");
  EXPECT_EQ(member.arrangement, placement::Arrangement::kSpread);
  EXPECT_TRUE(member.succeeded);
  EXPECT_EQ(
      member_of(pod_of({}, {{"scheduling.k8s.io/group-name", "a"}, {"volcano.sh/task-spec", "ps"}})).subgroup,
      "ps");
}

TEST(GangMember, SaysInWordsWhatIsWrong) {
  const auto ours = [](const json& annotations) { return pod_of({{"drover/gang", "a"}}, annotations); };
  for (const auto* const wrong : {"0", "-1", "x", "1.5", "99999999999"})
    EXPECT_EQ(refusal_of(ours({{"drover/gang-size", wrong}})),
              std::string("the pod 'team/p': the annotation 'drover/gang-size' is '") + wrong +
                  "', and no whole number from 1 on");
  EXPECT_EQ(refusal_of(ours({})),
            "the pod 'team/p': it belongs to the gang 'a', and has no annotation "
            "'drover/gang-size' that says of how many pods");
  EXPECT_NE(refusal_of(pod_of({}, {{"drover/gang-size", "2"}})).find("neither a controller nor the label"),
            std::string::npos);
  EXPECT_NE(refusal_of(ours({{"drover/gang-size", "2"}, {"drover/gang-arrangement", "line"}})).find("'line'"),
            std::string::npos);
  EXPECT_NE(refusal_of(ours({{"drover/gang-size", "2"}, {"drover/gang-rank", "first"}})).find("'first'"),
            std::string::npos);
  EXPECT_NE(refusal_of(pod_of({}, {{"drover/gang-of", "job"}})).find("belongs to no Job"), std::string::npos);
  EXPECT_NE(refusal_of(pod_of({}, {{"drover/gang-of", "set"}})).find("neither 'job' nor 'none'"),
            std::string::npos);
}

GangGroup group_of(const Resource& resource, const json& spec) {
  const auto group =
      read_gang_group(resource, {{"metadata", {{"name", "g"}, {"namespace", "n"}}}, {"spec", spec}});
  EXPECT_TRUE(group) << group.error().message;
  return group ? *group : GangGroup();
}

TEST(GangGroup, IsReadOfPodGroupsOfEachApi) {
  for (const auto* const version : {"v1alpha2", "v1beta1"}) {
    const Resource native{"scheduling.k8s.io", version, "podgroups"};
    const auto group = group_of(native, {{"schedulingPolicy", {{"gang", {{"minCount", 3}}}}},
                                         {"schedulingConstraints", {{"topology", {{{"key", "rack"}}}}}},
                                         {"preemptionPolicy", "Never"},
                                         {"priority", 7}});
    EXPECT_EQ(group.minimum, 3);
    EXPECT_EQ(group.topology_key, "rack");
    EXPECT_EQ(group.priority, 7);
    EXPECT_EQ(group.preempts, false);
    EXPECT_EQ(group_of(native, {{"schedulingPolicy", {{"basic", json::object()}}}}).minimum, 1);
  }
  const auto coscheduling = group_of({"scheduling.x-k8s.io", "v1alpha1", "podgroups"},
                                     {{"minMember", 4}, {"scheduleTimeoutSeconds", 10}});
  EXPECT_EQ(coscheduling.minimum, 4);
  EXPECT_EQ(coscheduling.schedule_timeout, std::chrono::seconds(10));
  const auto volcano =
      group_of({"scheduling.volcano.sh", "v1beta1", "podgroups"},
               {{"minMember", 3}, {"queue", "q"}, {"minTaskMember", {{"ps", 1}, {"worker", 2}}}});
  EXPECT_EQ(volcano.queue, "q");
  EXPECT_EQ(volcano.of_subgroups, (std::map<std::string, int, std::less<>>{{"ps", 1}, {"worker", 2}}));
  const auto kai = group_of({"scheduling.run.ai", "v2alpha2", "podgroups"},
                            {{"minMember", 2},
                             {"subGroups", {{{"name", "decode"}, {"minMember", 1}}}},
                             {"topologyConstraint", {{"requiredTopologyLevel", "rack"}}}});
  EXPECT_EQ(kai.of_subgroups.at("decode"), 1);
  EXPECT_EQ(kai.topology_key, "rack");
}

TEST(GangGroup, OfAControllerIsWhatItMakesAtOnce) {
  const Resource jobs{"batch", "v1", "jobs"};
  const Resource sets{"jobset.x-k8s.io", "v1alpha2", "jobsets"};
  const Resource leaders{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets"};
  const Resource torch{"kubeflow.org", "v1", "pytorchjobs"};
  EXPECT_EQ(group_of(jobs, json::object()).minimum, 1);
  EXPECT_EQ(group_of(jobs, {{"parallelism", 8}}).minimum, 8);
  EXPECT_EQ(group_of(jobs, {{"parallelism", 8}, {"completions", 3}}).minimum, 3);
  const auto replicated = [](int replicas, int parallelism) {
    return json{{"replicas", replicas}, {"template", {{"spec", {{"parallelism", parallelism}}}}}};
  };
  auto waits = replicated(5, 5);
  waits["dependsOn"] = {{{"name", "x"}, {"status", "Ready"}}};
  const json all = {replicated(1, 1), replicated(2, 4), waits};
  EXPECT_EQ(group_of(sets, {{"replicatedJobs", all}}).minimum, 9);
  EXPECT_EQ(group_of(sets, {{"replicatedJobs", all}, {"startupPolicy", {{"startupPolicyOrder", "InOrder"}}}})
                .minimum,
            1);
  const auto many = replicated(2'147'483'647, 2'147'483'647);
  EXPECT_EQ(group_of(sets, {{"replicatedJobs", {many, many, many}}}).minimum, 2'147'483'647);
  EXPECT_EQ(group_of(leaders, {{"leaderWorkerTemplate", {{"size", 4}}}}).minimum, 4);
  EXPECT_EQ(
      group_of(leaders, {{"leaderWorkerTemplate", {{"size", 4}}}, {"startupPolicy", "LeaderReady"}}).minimum,
      1);
  const json roles = {{"Launcher", {{"replicas", 1}}}, {"Worker", {{"replicas", 4}}}};
  EXPECT_EQ(group_of(torch, {{"mpiReplicaSpecs", roles}}).minimum, 5);
  EXPECT_EQ(group_of(torch, {{"mpiReplicaSpecs", roles}, {"launcherCreationPolicy", "WaitForWorkersReady"}})
                .minimum,
            4);
  EXPECT_EQ(group_of(torch, {{"mpiReplicaSpecs", roles},
                             {"runPolicy", {{"schedulingPolicy", {{"minAvailable", 2}}}}}})
                .minimum,
            2);
}

TEST(GangGroup, RefusesOnlyNonsense) {
  for (const auto& spec :
       {json(1), json{{"parallelism", "x"}}, json{{"parallelism", -1}}, json{{"parallelism", 1LL << 40}}}) {
    const auto group =
        read_gang_group({"batch", "v1", "jobs"}, {{"metadata", {{"name", "g"}}}, {"spec", spec}});
    ASSERT_FALSE(group) << spec;
    EXPECT_TRUE(group.error().message.starts_with("'g' of jobs: ")) << group.error().message;
  }
  EXPECT_TRUE(read_gang_group({"batch", "v1", "jobs"}, nullptr));
}

}  // namespace
}  // namespace drover::kube::scheduler
