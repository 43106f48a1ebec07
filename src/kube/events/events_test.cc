#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "kube/client/testing/fake_api.h"
#include "kube/events/event_recorder.h"
#include "kube/events/node_condition.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::FakeApi;

const EventTarget kNode = {.kind = "Node", .name = "a"};
const EventText kLost = {true, "GpuLost", "GPU 3 has fallen off the bus"};
const TimePoint kStart{std::chrono::hours(24 * 365 * 50)};

TEST(EventBook, CountsWhatHappensAgain) {
  EventBook book;
  book.add(kNode, kLost, kStart);
  const auto first = book.next(kStart);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->count, 1);
  EXPECT_EQ(first->name, "");
  book.wrote(*first, "a.1", kStart);
  EXPECT_FALSE(book.next(kStart));
  for (int i = 1; i <= 5; ++i) book.add(kNode, kLost, kStart + i * 1s);
  EXPECT_FALSE(book.next(kStart + 5s));
  EXPECT_EQ(book.due(), kStart + 10s);
  const auto second = book.next(kStart + 10s);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->count, 6);
  EXPECT_EQ(second->name, "a.1");
  EXPECT_EQ(second->first, kStart);
  EXPECT_EQ(second->last, kStart + 5s);
}

TEST(EventBook, LosesNothingThatHappensDuringAWrite) {
  EventBook book;
  book.add(kNode, kLost, kStart);
  const auto first = book.next(kStart);
  book.add(kNode, kLost, kStart + 1s);
  book.wrote(*first, "a.1", kStart + 2s);
  const auto second = book.next(kStart + 12s);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->count, 2);
  book.wrote(*second, "a.1", kStart + 12s);
  EXPECT_FALSE(book.due());
}

TEST(EventBook, SlowsDownWhoeverSaysTooMuch) {
  EventBook book;
  int written = 0;
  const auto write_all = [&](TimePoint now) {
    while (const auto next = book.next(now)) {
      ++written;
      book.wrote(*next, "x", now);
    }
  };
  for (int i = 0; i < 1000; ++i) {
    book.add(kNode, {true, "GpuLost", std::to_string(i)}, kStart + i * 1s);
    write_all(kStart + i * 1s);
  }
  EXPECT_EQ(written, 25 + 1000 / 60);
  EXPECT_EQ(book.dropped(), 1000U - written);
  book.add({.kind = "Pod", .name_space = "n", .name = "p", .uid = "u"}, kLost, kStart + 1000s);
  EXPECT_TRUE(book.next(kStart + 1000s));
}

TEST(EventBook, WritesOfEverNewObjects) {
  EventBook book({.most = 10});
  const auto pod = [](int i) { return EventTarget{.kind = "Pod", .name = std::to_string(i)}; };
  for (int i = 0; i < 100; ++i) {
    book.add(pod(i), kLost, kStart + i * 1s);
    const auto write = book.next(kStart + i * 1s);
    ASSERT_TRUE(write) << i;
    EXPECT_EQ(write->target, pod(i));
    book.wrote(*write, "x", kStart + i * 1s);
  }
  EXPECT_EQ(book.dropped(), 0U);
  // What waits is not forgotten for others.
  for (int i = 100; i < 120; ++i) book.add(pod(i), kLost, kStart + 100s);
  EXPECT_EQ(book.dropped(), 10U);
  EXPECT_EQ(book.next(kStart + 100s)->target, pod(100));
}

TEST(EventBook, RemembersNothingForEver) {
  EventBook book({.fresh = 60s});
  book.add(kNode, kLost, kStart);
  book.wrote(*book.next(kStart), "a.1", kStart);
  book.add(kNode, kLost, kStart + 61s);
  EXPECT_EQ(book.next(kStart + 61s)->name, "");
}

TEST(EventBook, TriesAgainWhatMayPass) {
  EventBook book({.again = 10s, .tries = 3});
  book.add(kNode, kLost, kStart);
  for (int i = 0; i < 3; ++i) {
    const auto now = kStart + i * 10s;
    EXPECT_FALSE(book.next(now - 1s));
    const auto write = book.next(now);
    ASSERT_TRUE(write);
    book.failed(*write, true, now);
  }
  EXPECT_FALSE(book.due());
  EXPECT_EQ(book.dropped(), 1U);
}

TEST(EventBook, FailsAsOftenAnewOnceItIsWritten) {
  EventBook book({.again = 10s, .tries = 2});
  for (int i = 0; i < 3; ++i) {
    const auto now = kStart + i * 20s;
    book.add(kNode, kLost, now);
    book.failed(*book.next(now), true, now);
    const auto again = book.next(now + 10s);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->name, i == 0 ? "" : "a.1");
    book.wrote(*again, "a.1", now + 10s);
  }
  EXPECT_EQ(book.dropped(), 0U);
}

json wait_for_events(FakeApi& api, std::size_t count, int of_the_first = 1) {
  for (int i = 0; i < 4000; ++i) {
    const auto list = api.list({{"", "v1", "events"}});
    if (list && list->items.size() >= count && (*list->items[0])["count"] >= of_the_first) {
      auto found = json::array();
      for (const auto& item : list->items) found.push_back(*item);
      return found;
    }
    std::this_thread::sleep_for(5ms);
  }
  ADD_FAILURE() << "no events";
  return json::array({json::object(), json::object()});
}

TEST(EventRecorder, WritesWhatKubectlShows) {
  FakeApi api;
  EventRecorder recorder(api, {.host = "a"});
  recorder.record(kNode, kLost);
  const auto node = wait_for_events(api, 1)[0];
  EXPECT_EQ(node["involvedObject"],
            json({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "a"}, {"uid", "a"}}));
  EXPECT_EQ(text_at(node, "/metadata/namespace"), "default");
  EXPECT_EQ(text_at(node, "/type"), "Warning");
  EXPECT_EQ(text_at(node, "/reason"), "GpuLost");
  EXPECT_EQ(text_at(node, "/message"), kLost.message);
  EXPECT_EQ(text_at(node, "/source/component"), "drover");
  recorder.record({.kind = "Pod", .name_space = "n", .name = "p", .uid = "u"},
                  {false, "GpuShared", std::string(5000, 'x') + "\xff"});
  const auto pod = wait_for_events(api, 2)[1];
  EXPECT_EQ(pod["involvedObject"]["namespace"], "n");
  EXPECT_LE(text_at(pod, "/message").size(), 1024U);
}

TEST(EventRecorder, CountsInTheEventThatIsThere) {
  FakeApi api;
  EventRecorder recorder(api, {.host = "a"}, {}, {.again = 1ms});
  recorder.record(kNode, kLost);
  wait_for_events(api, 1);
  recorder.record(kNode, kLost);
  const auto events = wait_for_events(api, 1, 2);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(api.remove({{"", "v1", "events"}, "default", text_at(events[0], "/metadata/name")}));
  recorder.record(kNode, kLost);  // made anew, with what was counted
  EXPECT_EQ(wait_for_events(api, 1, 3).size(), 1U);
}

TEST(EventRecorder, TellsOnceThatItMayNot) {
  FakeApi api;
  const Error denied{ErrorKind::kPermissionDenied, "denied", "", ""};
  api.fail_next({denied, denied});
  std::atomic<int> told = 0;
  EventRecorder recorder(api, {.host = "a"}, [&](const Error&) { ++told; }, {.again = 1ms});
  const auto creates = [&] {
    const auto requests = api.requests();
    return std::ranges::count(requests, "create", &ApiRequest::verb);
  };
  for (int i = 1; i <= 2; ++i) {
    recorder.record(kNode, kLost);
    while (creates() < i) std::this_thread::sleep_for(1ms);
  }
  recorder.record(kNode, kLost);
  wait_for_events(api, 1);
  EXPECT_EQ(told, 1);
}

TEST(EventRecorder, WritesWhenTheServerIsBack) {
  FakeApi api;
  const Error away{ErrorKind::kUnavailable, "away", "", ""};
  api.fail_next({away, away});
  EventRecorder recorder(api, {.host = "a"}, {}, {.again = 1ms});
  recorder.record(kNode, kLost);
  EXPECT_EQ(wait_for_events(api, 1)[0]["count"], 1);
}

TEST(EventRecorder, StandsBackForWhatMattersMoreButNotForEver) {
  FakeApi api;
  std::atomic<bool> busy = true;
  {
    EventRecorder recorder(api, {.host = "a"}, {}, {}, {[&] { return busy.load(); }, 1h});
    recorder.record(kNode, kLost);
    std::this_thread::sleep_for(100ms);
    EXPECT_TRUE(api.requests().empty());
    busy = false;
    wait_for_events(api, 1);
  }
  busy = true;
  EventRecorder patient(api, {.host = "a"}, {}, {}, {[&] { return busy.load(); }, 50ms});
  patient.record(kNode, kLost);
  patient.record(kNode, {false, "GpuFound", "GPU 3 is back"});
  wait_for_events(api, 3);
}

json conditions_of(FakeApi& api) {
  return (*api.get({kNodes, "", "a"}))["status"]["conditions"];
}

TEST(NodeCondition, StandsBesideThoseOfTheKubelet) {
  FakeApi api;
  const json ready = {{"type", "Ready"}, {"status", "True"}};
  ASSERT_TRUE(api.create(
      {kNodes}, {{"metadata", {{"name", "a"}}}, {"status", {{"conditions", json::array({ready})}}}}));
  const NodeCondition sick = {"DroverGpusHealthy", "False", "XidError", "GPU 3 has XID 79"};
  EXPECT_TRUE(set_node_condition(api, "a", sick, kStart));
  EXPECT_EQ(conditions_of(api), json({ready,
                                      {{"type", "DroverGpusHealthy"},
                                       {"status", "False"},
                                       {"reason", "XidError"},
                                       {"message", "GPU 3 has XID 79"},
                                       {"lastHeartbeatTime", format_time(kStart)},
                                       {"lastTransitionTime", format_time(kStart)}}}));
  const auto before = api.requests().size();
  EXPECT_TRUE(set_node_condition(api, "a", sick, kStart + 1h));
  EXPECT_EQ(api.requests().size(), before + 1);
  auto sicker = sick;
  sicker.message = "GPUs 3 and 4 have XID 79";
  EXPECT_TRUE(set_node_condition(api, "a", sicker, kStart + 2h));
  EXPECT_EQ(conditions_of(api)[1]["lastTransitionTime"], format_time(kStart));
  EXPECT_EQ(conditions_of(api)[1]["lastHeartbeatTime"], format_time(kStart + 2h));
  EXPECT_TRUE(remove_node_condition(api, "a", "DroverGpusHealthy"));
  EXPECT_TRUE(remove_node_condition(api, "a", "DroverGpusHealthy"));
  EXPECT_EQ(conditions_of(api), json::array({ready}));
}

}  // namespace
}  // namespace drover::kube
