#include "kube/scheduler/sharing/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/scheduler/sharing/pod_queue.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Object object_of(const std::string& name, const json& spec,
                 const std::string& made = "2026-01-01T00:00:00Z") {
  return std::make_shared<const json>(
      json{{"metadata", {{"name", name}, {"creationTimestamp", made}}}, {"spec", spec}});
}

json sure_of(int gpus) {
  return {{"guarantee", {{"gpus", gpus}}}};
}

TEST(Sharing, IsOneToOneWithTheRulesOfPlacement) {
  const auto sharing = read_sharing(
      {object_of("research.vision", {{"limit", {{"gpus", 8}, {"cpus", "1500m"}, {"memory", "1Gi"}}},
                                     {"guarantee", {{"gpus", "2.5"}}},
                                     {"weight", 3},
                                     {"namespaces", {"a", "b"}}}),
       object_of("empty", nullptr)},
      {object_of("team", {{"limit", {{"gpus", 4}}}, {"maxPriority", 1000}})});
  EXPECT_THAT(sharing.refused_queues, IsEmpty());
  EXPECT_THAT(sharing.refused_quotas, IsEmpty());
  const auto& queue = sharing.rules.queues.at("research/vision");
  EXPECT_EQ(queue.path, "research/vision");
  EXPECT_EQ(queue.limit, (placement::Limits{8000, 1500, 1U << 30}));
  EXPECT_EQ(queue.guarantee, (placement::Limits{2500, {}, {}}));
  EXPECT_EQ(queue.weight, 3);
  EXPECT_THAT(queue.users, ElementsAre("a", "b"));
  EXPECT_EQ(sharing.rules.queues.at("empty"), (placement::Queue{.path = "empty"}));
  const placement::Subject team{placement::SubjectKind::kNamespace, "team"};
  EXPECT_EQ(sharing.rules.quotas.at(team).limit, (placement::Limits{4000, {}, {}}));
  EXPECT_EQ(sharing.most_priority.at("team"), 1000);
  EXPECT_TRUE(placement::validate(sharing.rules));
}

TEST(Sharing, AMistakeIsToldOfItsObjectAndUndoesNoOther) {
  const std::pair<json, const char*> wrong[] = {
      {json(1), "the field 'spec' is no object"},
      {{{"limit", {{"gpus", "x"}}}}, "'gpus' of the limit is '\"x\"', and no amount"},
      {{{"limit", {{"gpus", -1}}}}, "'gpus' of the limit is '-1'"},
      {{{"limit", {{"gpus", "0.0001"}}}}, "in thousandths at the finest"},
      {{{"limit", {{"memory", true}}}}, "'memory' of the limit is 'true'"},
      {{{"limit", {{"gpus", "9999999999999"}}}}, "absurdly much"},
      {{{"limit", {{"gpus", 1}}}, {"guarantee", {{"gpus", 2}}}}, "is sure of 2000"},
      {{{"weight", 0}}, "a weight of 0 is not possible"},
      {{{"namespaces", {"a", "a"}}}, "named twice"}};
  for (const auto& [spec, message] : wrong) {
    const auto sharing = read_sharing({object_of("bad", spec), object_of("good", json::object())}, {});
    EXPECT_THAT(sharing.refused_queues.at("bad"), HasSubstr(message));
    EXPECT_EQ(sharing.refused_queues.size(), 1);
    EXPECT_EQ(sharing.rules.queues.size(), 1);
  }
  const auto sharing =
      read_sharing({}, {object_of("a", {{"limit", {{"cpus", -1}}}}), object_of("b", nullptr)});
  EXPECT_THAT(sharing.refused_quotas.at("a"), HasSubstr("'cpus' of the limit"));
  EXPECT_EQ(sharing.rules.quotas.size(), 1);
}

TEST(Sharing, OfGuaranteesThatDoNotFitTogetherTheOldestHold) {
  const auto sharing =
      read_sharing({object_of("a.new", sure_of(4), "2026-03-01T00:00:00Z"),
                    object_of("a.old", sure_of(6), "2026-02-01T00:00:00Z"),
                    object_of("a", sure_of(8), "2026-04-01T00:00:00Z"), object_of("b", sure_of(1))},
                   {});
  EXPECT_THAT(sharing.refused_queues, IsEmpty());
  EXPECT_EQ(sharing.not_guaranteed.size(), 1);
  EXPECT_THAT(sharing.not_guaranteed.at("a.new"), HasSubstr("together sure of 10000"));
  EXPECT_EQ(sharing.rules.queues.at("a/old").guarantee.gpu_milli, 6000);
  EXPECT_EQ(sharing.rules.queues.at("a/new").guarantee.gpu_milli, std::nullopt);
  EXPECT_TRUE(placement::validate(sharing.rules));
}

TEST(SharingStatus, SaysWhatIsHeldAndWhetherItIsAccepted) {
  const auto queue = object_of("q", sure_of(1));
  const auto sharing = read_sharing({queue, object_of("bad", json(1))}, {});
  const SharingUse use{{2500, 4000, 3U << 30}, 2};
  auto there = *queue;
  const auto patch = queue_status(there, sharing, use, TimePoint());
  ASSERT_TRUE(patch);
  const auto& status = patch->at("status");
  EXPECT_EQ(status["held"], (json{{"gpus", "2.5"}, {"cpus", "4"}, {"memory", "3Gi"}}));
  EXPECT_EQ(status["borrowed"], (json{{"gpus", "1.5"}}));
  EXPECT_EQ(status["waiting"], 2);
  EXPECT_EQ(status["conditions"][0]["status"], "True");
  there.merge_patch(*patch);
  EXPECT_FALSE(queue_status(there, sharing, use, TimePoint() + std::chrono::hours(1)));
  EXPECT_TRUE(queue_status(there, sharing, {}, TimePoint()));
  const auto bad = *queue_status(*object_of("bad", json(1)), sharing, {}, TimePoint());
  EXPECT_EQ(bad["status"]["conditions"][0]["status"], "False");
  EXPECT_THAT(bad["status"]["conditions"][0]["message"].get<std::string>(), HasSubstr("the queue 'bad'"));
  EXPECT_EQ((*quota_status(*object_of("team", {}), sharing, use, TimePoint()))["status"]["held"]["gpus"],
            "2.5");
}

QueueNames names_of(const json& labels, const json& annotations = json::object()) {
  return read_queue_names({{"metadata", {{"labels", labels}, {"annotations", annotations}}}});
}

TEST(PodQueue, IsTheFirstThatIsNamed) {
  const auto sharing = read_sharing({object_of("a.b", {}), object_of("team", {})}, {});
  const auto nobody = QueueNames();
  EXPECT_EQ(queue_of(sharing, names_of({}), nobody), "default");
  EXPECT_EQ(queue_of(sharing, names_of({{"drover/queue", "a.b"}}), nobody), "a/b");
  EXPECT_EQ(queue_of(sharing, names_of({}, {{"drover/queue", "a/b"}}), nobody), "a/b");
  EXPECT_EQ(queue_of(sharing, names_of({{"drover/queue", "unknown"}}), nobody), "unknown");
  EXPECT_EQ(queue_of(sharing, names_of({{"kueue.x-k8s.io/queue-name", "team"}}), nobody), "team");
  EXPECT_EQ(queue_of(sharing, names_of({{"kai.scheduler/queue", "team"}, {"drover/queue", "a.b"}}), nobody),
            "a/b");
  EXPECT_EQ(queue_of(sharing, names_of({{"kueue.x-k8s.io/queue-name", "theirs"}}),
                     names_of({{"drover/queue", "team"}})),
            "team");
  EXPECT_EQ(read_queue_names(json("nonsense")), nobody);
}

TEST(PodQueue, IsHeldToItsListsAndToTheQuota) {
  const auto sharing = read_sharing({object_of("a", {{"namespaces", {"team"}}}), object_of("a.b", {}),
                                     object_of("bad", json(1)), object_of("bad.child", {})},
                                    {object_of("team", {{"maxPriority", 5}}), object_of("wrong", json(1))});
  EXPECT_TRUE(may_stand(sharing, "a/b", "team", 5));
  EXPECT_TRUE(may_stand(sharing, "default", "other", 1'000'000));
  EXPECT_EQ(may_stand(sharing, "a/b", "team", 6).error().message,
            "pods of the namespace 'team' may have a priority of 5 at most, and this one has 6");
  EXPECT_EQ(may_stand(sharing, "a/b", "other", 0).error().message,
            "the namespace 'other' may not put pods into the queue 'a.b'");
  const auto unknown = may_stand(sharing, "a/c", "team", 0).error();
  EXPECT_EQ(unknown.kind, ErrorKind::kNotFound);
  EXPECT_EQ(unknown.message, "there is no queue 'a.c'");
  EXPECT_THAT(unknown.hint, HasSubstr("a.b"));
  EXPECT_THAT(may_stand(sharing, "bad/child", "team", 0).error().message,
              HasSubstr("the queue 'bad' is not accepted"));
  EXPECT_THAT(may_stand(sharing, "default", "wrong", 0).error().message,
              HasSubstr("the quota of the namespace 'wrong'"));
}

}  // namespace
}  // namespace drover::kube::scheduler
