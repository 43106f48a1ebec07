// What pods are told that wait for their turn, for a limit, or for their gang, and that what is named helps.

#include "kube/scheduler/testing/situations.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using testing::kFour;
using testing::kJob;
using testing::kOne;
using testing::kTwo;
using testing::nothing;
using testing::Place;
using testing::Situation;
using testing::Wants;

const Resource kGroupsOfTests{"scheduling.k8s.io", "v1beta1", "podgroups"};

Sharing with_queue(const std::string& path, std::int64_t gpu_milli) {
  Sharing sharing;
  sharing.rules.queues[path] = {.path = path, .limit = {.gpu_milli = gpu_milli}};
  return sharing;
}

Sharing with_quota(std::int64_t gpu_milli) {
  Sharing sharing;
  const placement::Subject subject{placement::SubjectKind::kNamespace, "team"};
  sharing.rules.quotas[subject] = {.subject = subject, .limit = {.gpu_milli = gpu_milli}};
  return sharing;
}

std::vector<Situation> of_sharing() {
  const auto in_queue = [](Place& in, const std::string& name) { in.queues.own = name; };
  return {
      {"behind another",
       [](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 2);
         in.first("large", kFour);
         in.job({.gpus = 3});
       },
       {"1 job stands before it; the first waits for 4 GPUs", "Place 2 of 2 in the queue."},
       [](Place& in) {
         in.ends("other");
         in.ends("large");
       }},
      {"it would fit, but others come first",
       [](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 2);
         in.first("large", kFour);
         in.job(kTwo);
       },
       {"node(s) were kept for others.", "Place 2 of 2 in the queue."},
       [](Place& in) { in.ends("large"); },
       "What helps"},
      {"the limit of a queue",
       [=](Place& in) {
         in_queue(in, "research.vision");
         in.scheduler.set_sharing(with_queue("research/vision", 2000));
         in.node("a", 4);
         in.runs("other", "a", 1);
         in.job(kTwo);
       },
       {"1 node(s) not asked because of the limit of a queue.",
        "The queue 'research.vision' holds 1 of its 2 GPUs", "Place 1 of 1 in the queue 'research.vision'.",
        "ask for at most 1 GPU"},
       [](Place& in) { in.again(kOne); }},
      {"the limit is used up",
       [=](Place& in) {
         in_queue(in, "small");
         in.scheduler.set_sharing(with_queue("small", 1000));
         in.node("a", 4);
         in.runs("other", "a", 1);
         in.job(kOne);
       },
       {"The queue 'small' holds 1 of its 1 GPU."},
       [](Place& in) { in.ends("other"); }},
      {"the quota of a namespace",
       [](Place& in) {
         in.scheduler.set_sharing(with_quota(2000));
         in.node("a", 4);
         in.runs("other", "a", 1);
         in.job(kTwo);
       },
       {"1 node(s) not asked because of a quota.", "The namespace 'team' holds 1 of its 2 GPUs",
        "ask for at most 1 GPU"},
       [](Place& in) { in.again(kOne); }},
      {"a queue that there is not",
       [=](Place& in) {
         in_queue(in, "vision");
         in.scheduler.set_sharing(with_queue("research", 4000));
         in.node("a", 4);
         in.job(kOne);
       },
       {"1 node(s) not asked.", "'vision'", "research"},
       [](Place& in) {
         in.queues.own = "research";
         in.again(kOne);
       }},
      {"a queue of others",
       [=](Place& in) {
         in_queue(in, "private");
         auto sharing = with_queue("private", 4000);
         sharing.rules.queues["private"].users = {"others"};
         in.scheduler.set_sharing(sharing);
         in.node("a", 4);
         in.job(kOne);
       },
       {"namespace 'team' may not put pods into the queue 'private'", "name another queue"},
       [](Place& in) {
         in.queues.own = "";
         in.again(kOne);
       }},
      {"a queue that is not accepted",
       [=](Place& in) {
         in_queue(in, "broken");
         Sharing sharing;
         sharing.refused_queues["broken"] = "the limit is no amount";
         in.scheduler.set_sharing(sharing);
         in.node("a", 4);
         in.job(kOne);
       },
       {"The queue 'broken' is not accepted: the limit is no amount"},
       [](Place& in) { in.scheduler.set_sharing(with_queue("broken", 4000)); }},
      {"a priority that is too high",
       [](Place& in) {
         Sharing sharing;
         sharing.most_priority["team"] = 10;
         in.scheduler.set_sharing(sharing);
         in.node("a", 4);
         in.job({.gpus = 1, .priority = 100});
       },
       {"may have a priority of 10 at most", "name a PriorityClass with a lower value"},
       [](Place& in) { in.again({.gpus = 1, .priority = 10}); }},
      {"it waits for the end of others",
       [](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 4);
         in.job({.gpus = 4, .priority = 100});
       },
       {"1 node(s) waited for the end of pods.", "It waits for the end of 1 job that makes room for it"},
       [](Place& in) { in.ends("other"); }},
      {"a mistake in the pod",
       [](Place& in) {
         in.node("a", 4);
         PodObject object{asking_pod(kJob, kOne)};
         object.mistake = "the annotation 'drover/gang-size' is no number";
         in.scheduler.put_pod(object);
       },
       {"1 node(s) not asked.", "The annotation 'drover/gang-size' is no number"},
       [](Place& in) { in.again(kOne); }},
  };
}

std::vector<Situation> of_gangs() {
  const auto grouped = [](int rank, int) {
    GangMember member{.gang = {GangKind::kPodGroup, "team", kJob}, .rank = {rank}};
    member.object = GangObject{kGroupsOfTests, "PodGroup", kJob};
    return member;
  };
  const auto group = [](int minimum, const std::string& topology = "") {
    GangGroup made;
    made.minimum = minimum;
    made.topology_key = topology;
    return made;
  };
  const auto put_group = [](Place& in, const GangGroup& made) {
    in.scheduler.gangs().put_object(kGroupsOfTests, "team", kJob, made);
  };
  return {
      {"some of a gang are missing",
       [](Place& in) {
         in.node("a", 4);
         in.gang_of = [](int rank, int) {
           return GangMember{.gang = {GangKind::kDrover, "team", kJob}, .rank = {rank}, .size = 3};
         };
         in.job(kOne, nothing, 2);
       },
       {"1 node(s) not asked before the whole gang can start.",
        "Waits for 1 of 3 pods of the gang 'team/job'."},
       [](Place& in) { in.again(kOne, nothing, 3); }},
      {"no room for all of it",
       [](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 1);
         in.job(kOne, nothing, 4);
       },
       {"1 node(s) had no room for the whole gang.", "3 of 4 members fit now", "make it a gang of 3"},
       [](Place& in) { in.again(kOne, nothing, 3); }},
      {"a member has no place at all",
       [](Place& in) {
         in.node("a", 2);
         in.node("b", 2);
         in.job({.gpus = 3}, nothing, 2);
       },
       {"2 Insufficient nvidia.com/gpu.", "ask for 2 GPUs for each member"},
       [](Place& in) { in.again(kTwo, nothing, 2); }},
      {"its PodGroup is not there",
       [=](Place& in) {
         in.node("a", 4);
         in.gang_of = grouped;
         in.job(kOne, nothing, 2);
       },
       {"Waits for the PodGroup 'team/job', which is not there yet."},
       [=](Place& in) { put_group(in, group(2)); }},
      {"in one rack",
       [=](Place& in) {
         in.labelled("a", 2, "rack", "r1");
         in.labelled("b", 2, "rack", "r2");
         in.gang_of = grouped;
         put_group(in, group(2, "rack"));
         in.job(kTwo, nothing, 2);
       },
       {"2 node(s) had no room for the whole gang.",
        "let the gang go to several domains of the topology 'rack'"},
       [=](Place& in) { put_group(in, group(2)); }},
      {"it comes after its gang",
       [=](Place& in) {
         in.node("a", 1);
         in.gang_of = grouped;
         put_group(in, group(1));
         in.runs("other", "a", 1);
         in.job(kOne, nothing, 2);
       },
       {"1 Insufficient nvidia.com/gpu."},
       [](Place& in) { in.ends("other"); }},
      {"its pods differ",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, nothing, 2);
         PodObject object{asking_pod("job-1", {.gpus = 1, .priority = 7})};
         object.gang = GangMember{.gang = {GangKind::kDrover, "team", kJob}, .rank = {1}, .size = 2};
         in.scheduler.put_pod(object);
       },
       {"differ in priority: 'job' and 'job-1'"},
       [](Place& in) { in.again(kOne, nothing, 2); }},
  };
}

TEST(Reasons, NameWhatHelpsInQueuesAndGangs) {
  for (const auto& all : {of_sharing(), of_gangs()})
    for (const auto& situation : all) testing::check(situation);
}

}  // namespace
}  // namespace drover::kube::scheduler
