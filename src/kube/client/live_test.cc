// The client against a real API server: tests/test_kube_client.py runs these with one, by
// DROVER_TEST_KUBECONFIG. Without, they are skipped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "kube/client/api_client.h"
#include "kube/client/binding.h"
#include "kube/client/informer.h"
#include "kube/client/lease.h"
#include "kube/client/server_version.h"
#include "kube/events/event_recorder.h"
#include "kube/events/node_condition.h"
#include "kube/labels/apply.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

const Resource kConfigMaps = {"", "v1", "configmaps"};

class LiveApi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (variable("DROVER_TEST_KUBECONFIG").empty()) GTEST_SKIP() << "tests/test_kube_client.py runs it";
    const auto config = find_config({.kubeconfig = variable("DROVER_TEST_KUBECONFIG")});
    ASSERT_TRUE(config) << to_string(config.error());
    auto client = ApiClient::open(*config);
    ASSERT_TRUE(client) << to_string(client.error());
    api_ = std::move(*client);
  }
  static std::string variable(const char* name) {
    const char* value = ::getenv(name);
    return value == nullptr ? "" : value;
  }
  static ObjectPath map_path(const std::string& name = "") { return {kConfigMaps, "default", name}; }
  static json map_of(const std::string& name, const json& data = json::object()) {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"labels", {{"by", "live-test"}}}}},
            {"data", data}};
  }
  json node() const {
    const auto node = api_->get({kNodes, "", variable("DROVER_TEST_NODE")});
    EXPECT_TRUE(node) << to_string(node.error());
    return node.value_or(json::object());
  }

  std::unique_ptr<ApiClient> api_;
};

TEST_F(LiveApi, MakesChangesAndRemovesObjects) {
  const auto made = api_->create(map_path(), map_of("live", {{"a", "1"}}));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(api_->create(map_path(), map_of("live")).error().kind, ErrorKind::kConflict);
  const auto patched = api_->patch(map_path("live"), PatchType::kMerge, {{"data", {{"b", "2"}}}});
  ASSERT_TRUE(patched) << to_string(patched.error());
  EXPECT_EQ((*patched)["data"], json({{"a", "1"}, {"b", "2"}}));
  const auto stale = api_->replace(map_path("live"), *made);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(api_->remove(map_path("live"), "another-uid").error().kind, ErrorKind::kConflict);
  EXPECT_TRUE(api_->remove(map_path("live"), text_at(*made, "/metadata/uid")));
  EXPECT_TRUE(api_->remove(map_path("live")));
  const auto gone = api_->get(map_path("live"));
  ASSERT_FALSE(gone);
  EXPECT_EQ(to_string(gone.error()),
            "Failed to get configmaps 'default/live': configmaps \"live\" not found");
  EXPECT_EQ(api_->create(map_path(), map_of("not a name")).error().kind, ErrorKind::kInvalid);
}

TEST_F(LiveApi, ListsMoreThanAPage) {
  for (int i = 0; i < 510; ++i)
    ASSERT_TRUE(api_->apply(map_path(fmt::format("page-{}", i)), map_of(fmt::format("page-{}", i)), "test"));
  const auto list = api_->list({kConfigMaps, "default", "by=live-test"});
  ASSERT_TRUE(list) << to_string(list.error());
  EXPECT_EQ(list->items.size(), 510U);
  EXPECT_EQ(api_->list({kConfigMaps, "default", "", "metadata.name=page-7"})->items.size(), 1U);
  for (int i = 0; i < 510; ++i) EXPECT_TRUE(api_->remove(map_path(fmt::format("page-{}", i))));
}

TEST_F(LiveApi, FollowsChanges) {
  const Informer maps(*api_, {.selection = {kConfigMaps, "default", "by=live-test"}});
  ASSERT_TRUE(maps.wait_until_listed(20s));
  const auto wait_for = [&](const std::string& key, const std::string& value) {
    for (int i = 0; i < 2000; ++i, std::this_thread::sleep_for(10ms)) {
      const auto found = maps.find(key);
      EXPECT_FALSE(found && found->at("metadata").contains("managedFields"));
      if ((found ? text_at(*found, "/data/a") : "gone") == value) return true;
    }
    return false;
  };
  ASSERT_TRUE(api_->create(map_path(), map_of("followed", {{"a", "1"}})));
  EXPECT_TRUE(wait_for("default/followed", "1"));
  EXPECT_TRUE(api_->patch(map_path("followed"), PatchType::kMerge, {{"data", {{"a", "2"}}}}));
  EXPECT_TRUE(wait_for("default/followed", "2"));
  EXPECT_TRUE(api_->remove(map_path("followed")));
  EXPECT_TRUE(wait_for("default/followed", "gone"));
}

/// The map "ready" tells the caller to kill the API server; "after" is made when it is back.
TEST_F(LiveApi, OutlivesTheServer) {
  std::mutex mutex;
  std::vector<std::string> troubles;
  const Informer maps(*api_, {.selection = {kConfigMaps, "default"}, .on_trouble = [&](const Error& error) {
                                const std::lock_guard lock(mutex);
                                troubles.push_back(error.message);
                              }});
  ASSERT_TRUE(maps.wait_until_listed(20s));
  ASSERT_TRUE(api_->create(map_path(), map_of("ready")));
  for (int i = 0; i < 18000 && !maps.find("default/after"); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(maps.find("default/after"));
  EXPECT_TRUE(maps.find("default/ready"));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(troubles, Contains(HasSubstr("the API server at 'https://")));
}

TEST_F(LiveApi, EndsAWatchWhenItIsStopped) {
  const auto list = api_->list({kConfigMaps, "default"});
  ASSERT_TRUE(list);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(200ms);
    stop.request_stop();
  });
  const auto watched = api_->watch(
      {{kConfigMaps, "default"}, list->resource_version}, [](const WatchEvent&) { return Status(); },
      stop.get_token());
  ASSERT_FALSE(watched);
  EXPECT_THAT(watched.error().message, HasSubstr("it was stopped"));
}

TEST_F(LiveApi, LabelsTheNodeAsOneOfSeveral) {
  const auto name = variable("DROVER_TEST_NODE");
  const auto before = node()["metadata"]["labels"];
  NodeFacts facts;
  facts.inventory.simulated = true;
  facts.inventory.driver_version = "550.163.01";
  facts.inventory.devices = {{.uuid = "GPU-1", .model = "NVIDIA A100-PCIE-40GB (x)"}};
  const auto labels = node_labels(facts, {});
  auto expected = before;
  expected.update(json(labels));
  EXPECT_TRUE(apply_labels(*api_, name, labels));
  EXPECT_EQ(node()["metadata"]["labels"], expected);
  EXPECT_TRUE(apply_labels(*api_, name, {}));
  EXPECT_EQ(node()["metadata"]["labels"], before);
}

TEST_F(LiveApi, SetsAConditionBesideTheKubelets) {
  const auto name = variable("DROVER_TEST_NODE");
  const auto condition = [&](const std::string& type) {
    const auto now = node();
    for (const auto& item : now["status"]["conditions"])
      if (item["type"] == type) return text_at(item, "/status");
    return std::string("absent");
  };
  const NodeCondition sick = {"DroverGpusHealthy", "False", "XidError", "GPU 3 has XID 79"};
  const auto set = set_node_condition(*api_, name, sick, wall_clock());
  ASSERT_TRUE(set) << to_string(set.error());
  EXPECT_EQ(condition("DroverGpusHealthy"), "False");
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_TRUE(remove_node_condition(*api_, name, "DroverGpusHealthy"));
  EXPECT_EQ(condition("DroverGpusHealthy"), "absent");
  EXPECT_EQ(condition("Ready"), "True");
}

TEST_F(LiveApi, WritesEvents) {
  std::vector<Error> troubles;
  const EventTarget target = {.kind = "Node", .name = variable("DROVER_TEST_NODE")};
  EventRecorder recorder(*api_, {.host = target.name}, [&](const Error& error) { troubles.push_back(error); },
                         {.again = 10ms});
  const Selection of_the_node = {{"", "v1", "events"}, "default", "", "reason=DroverLiveTest"};
  for (int count = 1; count <= 3; ++count) {
    recorder.record(target, {true, "DroverLiveTest", "a GPU has fallen off the bus"});
    bool found = false;
    for (int i = 0; i < 1000 && !found; ++i, std::this_thread::sleep_for(10ms)) {
      const auto list = api_->list(of_the_node);
      found = list && list->items.size() == 1 && (*list->items[0])["count"] == count;
    }
    EXPECT_TRUE(found) << count;
  }
  EXPECT_TRUE(troubles.empty()) << to_string(troubles.front());
}

TEST_F(LiveApi, BindsAPod) {
  const ObjectPath path = {kPods, "default", "bound"};
  const auto pod = api_->create(
      {kPods, "default"},
      {{"metadata", {{"name", "bound"}}},
       {"spec",
        {{"schedulerName", "nobody"}, {"containers", {{{"name", "main"}, {"image", "not.there/x"}}}}}}});
  ASSERT_TRUE(pod) << to_string(pod.error());
  Binding binding = {.name_space = "default",
                     .pod = "bound",
                     .uid = "another",
                     .resource_version = text_at(*pod, "/metadata/resourceVersion"),
                     .node = variable("DROVER_TEST_NODE"),
                     .annotations = {{"drover.test/devices", "0,1"}}};
  EXPECT_EQ(bind(*api_, binding).error().kind, ErrorKind::kConflict);
  binding.uid = text_at(*pod, "/metadata/uid");
  for (int i = 0; i < 2; ++i) {
    const auto bound = bind(*api_, binding);
    EXPECT_TRUE(bound) << to_string(bound.error());
  }
  const auto now = api_->get(path);
  ASSERT_TRUE(now);
  EXPECT_EQ(text_at(*now, "/spec/nodeName"), binding.node);
  EXPECT_EQ((*now)["metadata"]["annotations"]["drover.test/devices"], "0,1");
  binding.node = "elsewhere";
  EXPECT_EQ(bind(*api_, binding).error().kind, ErrorKind::kConflict);
  EXPECT_TRUE(api_->remove(path, binding.uid));
  binding.pod = "absent";
  EXPECT_EQ(bind(*api_, binding).error().kind, ErrorKind::kNotFound);
}

TEST_F(LiveApi, LeadsByALease) {
  LeaseCandidate a(*api_, {"default", "live", "a"});
  LeaseCandidate b(*api_, {"default", "live", "b"});
  for (int i = 0; i < 2; ++i) {
    const auto step = a.step();
    EXPECT_TRUE(step.outcome) << to_string(step.outcome.error());
  }
  EXPECT_TRUE(a.is_leader());
  EXPECT_TRUE(b.step().outcome);
  EXPECT_EQ(b.holder(), "a");
  EXPECT_TRUE(a.release());
  EXPECT_TRUE(b.step().outcome);
  EXPECT_TRUE(b.is_leader());
  EXPECT_TRUE(b.release());
}

TEST_F(LiveApi, KnowsWhatIsServed) {
  EXPECT_EQ(is_served(*api_, kPods), true);
  EXPECT_EQ(is_served(*api_, {"coordination.k8s.io", "v1", "leases"}), true);
  EXPECT_EQ(is_served(*api_, {"coordination.k8s.io", "v1", "podgroups"}), false);
  EXPECT_EQ(is_served(*api_, {"drover.test", "v1", "podgroups"}), false);
}

/// With an account that may only get nodes.
TEST_F(LiveApi, SaysWhichRightIsMissing) {
  const auto denied = api_->list({kConfigMaps, "default"});
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_THAT(to_string(denied.error()), AllOf(HasSubstr("configmaps is forbidden: User"),
                                               HasSubstr("the right to 'list' 'configmaps'")));
  EXPECT_FALSE(node().empty());
}

/// With a token of nobody's.
TEST_F(LiveApi, SaysThatATokenIsNotAccepted) {
  const auto unknown = api_->list({kNodes});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUnauthenticated) << to_string(unknown.error());
}

}  // namespace
}  // namespace drover::kube
