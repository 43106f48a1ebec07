// The engine and what is shared: gangs, shares, preemption, plans, queues and quotas.

#include <gmock/gmock.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using control::TaskState;
using LocalSharingTest = testing::LocalEngineTest;

TEST_F(LocalSharingTest, AGangIsAcceptedWholeAndToldOfItsOthers) {
  begin();
  const auto records = submit_gang(gang_of(2, 1));
  ASSERT_TRUE(records) << to_string(records.error());
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[1].task.id, "t1-1");
  run();
  ASSERT_EQ(world_.asked.size(), 2u);
  const auto& place = world_.asked[1].gang;
  ASSERT_TRUE(place);
  EXPECT_EQ(place->id, "t1");
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->hosts, (std::vector<std::string>{"here", "here"}));
  EXPECT_EQ(place->first_port, (*records)[0].gang_port);
  begin();
  EXPECT_EQ(engine_->task({}, "t1-0")->gang_port, place->first_port) << "kept over a restart";
  EXPECT_EQ(world_.launches["t1-0"], 1);
  EXPECT_EQ(engine_->explain({}, "t1-1")()->record.task.gang->rank, 1);
  EXPECT_EQ(engine_->explain({}, "t1")()->record.task.gang->rank, 0);

  EXPECT_EQ(submit_gang(gang_of(2, 2)).error().kind, ErrorKind::kInvalid);
  auto wrong = gang_of(2, 0);
  wrong.members[1].user = "root";
  const auto unasked = submit_gang(wrong);
  ASSERT_FALSE(unasked);
  EXPECT_EQ(unasked.error().path, "/members/1/user");
  EXPECT_EQ(unasked.error().kind, ErrorKind::kInternal) << "the database of users is not asked on the strand";
  EXPECT_EQ(engine_->tasks({}).records().size(), 2u);
}

TEST_F(LocalSharingTest, AGangIsStoppedByItsIdOrItsName) {
  for (const char* named : {"t1", "train", "t1-1"}) {
    ids_ = 0;
    begin();
    ASSERT_TRUE(submit_gang(gang_of(2, 1)));
    run();
    Result<control::TaskRecord> stopped = fail(ErrorKind::kInternal, "no answer came");
    engine_->stop({}, named, false, [&](auto result) { stopped = std::move(result); });
    ASSERT_TRUE(stopped) << to_string(stopped.error());
    run();
    EXPECT_EQ(world_.stopped.size(), 2u) << named;
    for (const char* id : {"t1-0", "t1-1"}) end(id, 143);
    EXPECT_EQ(state_of("t1-0"), TaskState::kKilled) << named;
    TearDown();
    world_ = {};
    SetUp();
  }
}

TEST_F(LocalSharingTest, APreemptedTaskStartsAfreshAlsoOverRestarts) {
  begin(1);
  const auto low = submit(1)->task.id;
  run();
  const auto high = submit_with([](auto& task) {
                      task.resources.gpus = {{1, {}}};
                      task.priority = 5;
                    })->task.id;
  run();
  EXPECT_EQ(world_.stopped, std::vector<std::string>{low});
  begin(1);  // killed after the stop
  EXPECT_EQ(world_.stopped, (std::vector<std::string>{low, low}));
  end(low, 143);
  EXPECT_EQ(state_of(low), TaskState::kQueued);
  EXPECT_EQ(state_of(high), TaskState::kStarting);
  EXPECT_EQ(engine_->explain({}, low)()->reasons.back(),
            "it ran before: preempted by work of higher priority");
  begin(1);  // killed while it waits
  EXPECT_EQ(world_.forgotten, std::vector<std::string>{});
  EXPECT_EQ(std::count(world_.cleaned.begin(), world_.cleaned.end(), low), 2);
  end(high, 0);
  EXPECT_EQ(world_.launches[low], 2);
  EXPECT_EQ(world_.attempts[low], 1);
  begin(1);  // killed while it runs again
  EXPECT_EQ(world_.launches[low], 2);
  end(low, 0);
  EXPECT_EQ(state_of(low), TaskState::kFinished);
}

TEST_F(LocalSharingTest, SharesOfOneGpuAreShownWithAllWhoHaveThem) {
  begin(1);
  const auto half = [](workload::Task& task) {
    task.resources.gpus = {{1, {}}};
    task.resources.share.milli = 500;
  };
  const auto first = submit_with(half)->task.id;
  submit_with(half);
  run();
  const auto holders = engine_->holders({})();
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].uuid, holders[1].uuid);
  EXPECT_EQ(holders[0].milli, 500);
  EXPECT_EQ(holders[0].memory_bytes, 8ULL << 30);
  ASSERT_EQ(world_.asked.size(), 2u);
  EXPECT_EQ(world_.asked[0].gpu_devices.size(), 1u);
  EXPECT_EQ(world_.asked[0].gpu_shares.at(0).milli, 500);
  EXPECT_EQ(engine_->node().gpus_free, 0);
  EXPECT_EQ(engine_->explain({}, first)()->reasons.back(),
            "it has 0.5 of GPU 0 (GPU-0) (counted, not enforced)");
}

TEST_F(LocalSharingTest, ListsOfTheMachineAreReadLaterAsTheyWere) {
  begin(1);
  const auto running = submit(1)->task.id;
  run();
  const auto waiting = submit(1)->task.id;
  const auto queues = engine_->queues({});
  const auto holders = engine_->holders({});
  end(running, 0);
  run();
  const auto then = queues();
  ASSERT_EQ(then.size(), 1u);
  EXPECT_EQ(then.at(0).used.gpu_milli, 1000);
  ASSERT_EQ(then.at(0).waiting.size(), 1u);
  EXPECT_EQ(then.at(0).waiting.at(0).id, waiting);
  EXPECT_EQ(holders().at(0).task_id, running);
  EXPECT_EQ(engine_->holders({})().at(0).task_id, waiting);
  EXPECT_TRUE(engine_->queues({})().at(0).waiting.empty());
}

TEST_F(LocalSharingTest, SaysWhereATaskIsPinnedAndWhereItCannotBe) {
  begin(1);
  auto machine = node(1);
  machine.inventory.devices[0].numa_node = 0;
  const auto explained = [&](std::vector<int> cpus) {
    machine.numa = {{0, cpus}};
    machine.milli_cpus = 64'000;
    engine_->set_machine(machine);
    const auto id = submit(1)->task.id;
    run();
    EXPECT_EQ(world_.asked.back().cpus, cpus);
    auto text = engine_->explain({}, id)()->reasons.back();
    end(id, 0);
    return text;
  };
  EXPECT_EQ(explained({1, 2}), "it is pinned to the CPUs 1-2");
  EXPECT_EQ(explained({3, 4, 5}),
            "it is pinned to the CPUs 3: of those chosen for it (3-5) this host has no others");
  EXPECT_EQ(explained({20, 21}), "it is not pinned: the CPUs chosen for it (20-21) are not on this host");
  EXPECT_EQ(explained({0, 1, 2, 3, 4}),
            "it is not pinned: the CPUs chosen for it (0-4) are all that this host has");
}

TEST_F(LocalSharingTest, PlansWithoutDoing) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const auto starts = engine_->plan(alice, gang_of(1, 2))();
  ASSERT_TRUE(starts) << to_string(starts.error());
  EXPECT_TRUE(starts->starts_now);
  ASSERT_EQ(starts->members.size(), 1u);
  EXPECT_EQ(starts->members[0].gpus.size(), 2u);
  EXPECT_TRUE(engine_->tasks({}).records().empty());

  const auto others = submit(2, Caller{{1001, 1001, {}, "bob", "/"}})->task.id;
  const auto waits = engine_->plan(alice, gang_of(2, 1))();
  EXPECT_FALSE(waits->starts_now);
  EXPECT_EQ(waits->place, 1);
  EXPECT_FALSE(waits->reasons.empty());
  auto urgent = gang_of(1, 2);
  urgent.members[0].task.priority = 1;
  EXPECT_EQ(engine_->plan(alice, urgent)().error().path, "/priority");
  const auto preempts = engine_->plan({}, urgent)();
  EXPECT_EQ(preempts->victims, 1);
  EXPECT_EQ(preempts->victim_ids, std::vector<std::string>{others});
  EXPECT_EQ(state_of(others), TaskState::kStarting);
  EXPECT_EQ(engine_->plan(alice, gang_of(1, 3))().error().kind, ErrorKind::kInvalid);
}

TEST_F(LocalSharingTest, APlanAndAnExplanationSayTheSame) {
  begin();
  submit(1);
  const auto planned = engine_->plan({}, gang_of(1, 2))();
  ASSERT_TRUE(planned);
  const auto explained = engine_->explain({}, submit(2)->task.id)();
  ASSERT_TRUE(explained);
  EXPECT_FALSE(planned->remedies.empty());
  EXPECT_EQ(explained->reasons, planned->reasons);
  EXPECT_EQ(explained->remedies, planned->remedies);
  EXPECT_EQ(explained->place, planned->place);
}

TEST_F(LocalSharingTest, QueuesAreRootsToSetAndEverybodysToSee) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const Caller bob{{1001, 1001, {}, "bob", "/"}};
  EXPECT_EQ(set_queue({"research/vision"}, alice).error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(set_queue({"research/vision", {1000, {}, {}}, {2000, {}, {}}}).error().path,
            "/queues/research~1vision/guarantee/gpu_milli");
  ASSERT_TRUE(set_queue({"research/vision", {1000, {}, {}}, {}, 1, {"alice"}}));
  const auto in_vision = [](workload::Task& task) {
    task.queue = "research/vision";
    task.resources.gpus = {{1, {}}};
  };
  EXPECT_EQ(submit_with(in_vision, bob).error().kind, ErrorKind::kPermissionDenied);
  ASSERT_TRUE(submit_with(in_vision, alice));
  const auto waiting = submit_with(in_vision, alice)->task.id;
  begin();  // the rules are in the journal
  const auto queues = engine_->queues(bob)();
  ASSERT_EQ(queues.size(), 3u);
  EXPECT_EQ(queues[0].queue.path, "default");
  EXPECT_EQ(queues[1].queue.path, "research");
  EXPECT_EQ(queues[1].used.gpu_milli, 1000);
  EXPECT_TRUE(queues[1].waiting.empty());
  const auto& vision = queues[2];
  EXPECT_EQ(vision.queue.limit.gpu_milli, 1000);
  EXPECT_FALSE(vision.usable);
  ASSERT_EQ(vision.waiting.size(), 1u);
  EXPECT_EQ(vision.waiting[0].user, "alice");
  EXPECT_EQ(vision.waiting[0].wanted.gpu_milli, 1000);
  EXPECT_EQ(vision.waiting[0].id, "");
  EXPECT_TRUE(vision.waiting[0].reasons.empty());
  EXPECT_EQ(engine_->queues(alice)()[2].waiting[0].id, waiting);
  EXPECT_EQ(engine_->queues(alice)()[2].waiting[0].place, engine_->explain(alice, waiting)()->place);
  EXPECT_FALSE(engine_->queues(alice)()[2].waiting[0].reasons.empty());
  const auto remove_queue = [&](const std::string& path) {
    return transact([&] { return engine_->remove_queue({}, path); });
  };
  EXPECT_EQ(remove_queue("research/vision").error().kind, ErrorKind::kConflict);
  EXPECT_EQ(remove_queue("nobody's").error().kind, ErrorKind::kNotFound);
}

TEST_F(LocalSharingTest, WhatIsCordonedGetsNoNewWork) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const auto& devices = engine_->inventory().devices;
  const auto set_cordon = [&](const std::string& gpu, std::optional<std::string> reason,
                              Caller who = {{0, 0, {}, "root", "/root"}}) {
    return transact([&] { return engine_->set_cordon(who, gpu, reason); });
  };
  const auto wanting = [](int gpus) {
    return [gpus](workload::Task& task) {
      if (gpus > 0) task.resources.gpus = {{gpus, {}}};
    };
  };
  const auto all = static_cast<int>(devices.size());
  const auto first = submit_with(wanting(1), alice)->task.id;
  const auto held = engine_->task({}, first)->gpus.front().uuid;
  EXPECT_EQ(set_cordon(held, "", alice).error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(set_cordon("GPU-absent", "").error().kind, ErrorKind::kNotFound);
  ASSERT_TRUE(set_cordon(held, "a fan is loud"));
  EXPECT_NE(engine_->task({}, first)->state, control::TaskState::kKilled) << "what runs goes on";
  const auto waits = submit_with(wanting(all), alice)->task.id;
  begin();  // it is in the journal
  EXPECT_EQ(engine_->task({}, waits)->state, control::TaskState::kQueued);
  EXPECT_THAT(
      engine_->explain(alice, waits)()->reasons,
      ::testing::Contains(::testing::HasSubstr("is not given to anyone: cordoned by root: a fan is loud")));
  ASSERT_TRUE(set_cordon(std::string(placement::kWholeMachine), ""));
  EXPECT_EQ(engine_->node().cordoned, "by root");
  EXPECT_EQ(engine_->task({}, submit_with(wanting(0), alice)->task.id)->state, control::TaskState::kQueued);
  ASSERT_TRUE(set_cordon(std::string(placement::kWholeMachine), std::nullopt));
  EXPECT_EQ(set_cordon(std::string(placement::kWholeMachine), std::nullopt).error().kind,
            ErrorKind::kNotFound);
  ASSERT_TRUE(set_cordon(held, std::nullopt));
  EXPECT_EQ(engine_->node().cordoned, "");
}

TEST_F(LocalSharingTest, QuotasAreRootsToSetAndOnesOwnToSee) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const placement::Subject subject{placement::SubjectKind::kUser, "alice"};
  const placement::Quota quota{subject, {1000, {}, {}}, 5};
  const auto set_quota = [&](const Caller& caller) {
    return transact([&] { return engine_->set_rules(caller, {}, {quota}); });
  };
  const auto remove_quota = [&] { return transact([&] { return engine_->remove_quota({}, subject); }); };
  EXPECT_EQ(set_quota(alice).error().kind, ErrorKind::kPermissionDenied);
  ASSERT_TRUE(set_quota({}));
  ASSERT_TRUE(submit(1, alice));
  ASSERT_EQ(engine_->quotas(alice).size(), 1u);
  EXPECT_EQ(engine_->quotas(alice)[0].used.gpu_milli, 1000);
  EXPECT_TRUE(engine_->quotas(Caller{{1001, 1001, {}, "bob", "/"}}).empty());
  EXPECT_TRUE(remove_quota());
  EXPECT_EQ(remove_quota().error().kind, ErrorKind::kNotFound);
}

TEST_F(LocalSharingTest, WhatCanNeverRunIsRefusedBeforeItWaits) {
  auto ports = this->ports();
  ports.check_task = [](const workload::Task& task, const std::vector<workload::NodeRule>&) -> Status {
    if (task.command == std::vector<std::string>{"never"})
      return fail(ErrorKind::kUnsupported, "Never" + task.origin.name);
    return {};
  };
  ASSERT_TRUE(open(node(2), std::move(ports), std::make_unique<FakeContainerizer>(world_)));
  run();
  const auto never = [](workload::Task& task) { task.command = {"never"}; };
  EXPECT_EQ(submit_with(never).error().message, "Never");
  EXPECT_TRUE(submit_with([](workload::Task&) {}));
  workload::Service service;
  service.id = "/web";
  service.task = engine_->state().tasks.begin()->second.task;
  never(service.task);
  const auto put = [&] {
    return transact([&]() -> Status {
      DROVER_CHECK_OK(engine_->change(control::event::ServicesChanged{{service}, {}, {}}));
      return {};
    });
  };
  EXPECT_EQ(put().error().message, "Never/web") << "as the instance that it would be";
}

TEST_F(LocalSharingTest, WhoPlacesSaysWhatWouldBecomeOfAPlan) {
  std::vector<workload::Task> asked;
  placement::Forecast answer{
      .decisions = {}, .ended = {"", "unknown"}, .place = 2, .reasons = {"none is free"}};
  auto ports = this->ports();
  ports.forecast = [&](const std::vector<workload::Task>& tasks) -> Result<placement::Forecast> {
    asked = tasks;
    return answer;
  };
  placed_by_others_ = true;
  ASSERT_TRUE(open(node(2), std::move(ports), std::make_unique<FakeContainerizer>(world_)));
  run();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const auto theirs = submit(1, Caller{{1001, 1001, {}, "bob", "/"}})->task.id;
  const auto own = submit(1, alice)->task.id;
  answer.ended.insert(answer.ended.end(), {theirs, own});
  const auto waits = engine_->plan(alice, gang_of(2, 1))();
  ASSERT_TRUE(waits) << to_string(waits.error());
  EXPECT_FALSE(waits->starts_now);
  EXPECT_EQ(waits->place, 2);
  EXPECT_EQ(waits->reasons, answer.reasons);
  EXPECT_EQ(waits->victims, 4);
  EXPECT_EQ(waits->victim_ids, std::vector<std::string>{own}) << "those of others are counted";
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[1].owner_name, "alice");
  EXPECT_EQ(asked[1].gang->rank, 1);
  answer = {.decisions = {{.node = "n"}}};
  EXPECT_TRUE(engine_->plan(alice, gang_of(1, 1))()->starts_now);
  asked.clear();
  auto held = gang_of(1, 1);
  held.members[0].begin_in = std::chrono::hours(1);
  EXPECT_FALSE(engine_->plan(alice, held)()->starts_now);
  auto urgent = gang_of(1, 1);
  urgent.members[0].task.priority = 1;
  EXPECT_EQ(engine_->plan(alice, urgent)().error().path, "/priority");
  EXPECT_TRUE(asked.empty()) << "nobody is asked of what is refused or held back";
}

TEST_F(LocalSharingTest, RulesAreThoseThatWhoSharesOutCanKeepTo) {
  std::vector<std::size_t> told;  // how many queues
  auto ports = this->ports();
  ports.check_rules = [](const placement::Rules& rules) -> Status {
    if (rules.queues.contains("b")) return fail(ErrorKind::kUnsupported, "There can be no b");
    return {};
  };
  ports.keep_rules = [&](const placement::Rules& rules) { told.push_back(rules.queues.size()); };
  ASSERT_TRUE(open(node(2), std::move(ports), std::make_unique<FakeContainerizer>(world_)));
  run();
  const auto set = [&](const std::string& path) {
    return transact([&] { return engine_->set_rules({}, {placement::Queue{path}}, {}); });
  };
  ASSERT_TRUE(set("a"));
  EXPECT_EQ(set("b").error().message, "There can be no b");
  EXPECT_EQ(told, (std::vector<std::size_t>{0, 1})) << "at the start, and when they have changed";
}

}  // namespace
}  // namespace drover::engine
