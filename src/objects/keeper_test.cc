#include "objects/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/eventually.h"
#include "kube/client/testing/fake_api.h"
#include "objects/release.h"

namespace drover::objects {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// As much of the daemon as apps need.
class FakeDaemon {
 public:
  Result<Answer> ask(const User& user, const Call& call) {
    const std::lock_guard lock(mutex_);
    if (away) return fail(ErrorKind::kTimeout, "The daemon has not answered");
    if (call.method != "GET") changes_.push_back(user.name + " " + call.method);
    if (call.body.is_object() && call.body.contains("mistake"))
      return Answer{422, {{"message", "Object is not valid: /mistake"}}};
    if (call.method == "DELETE") app = nullptr;
    if (call.method == "POST" || call.method == "PUT") {
      app = call.body;
      app["version"] = std::to_string(++version_);
    }
    if (call.method != "GET") return Answer{200, json::object()};
    return app.is_null() ? Answer{404, {{"message", "none"}}} : Answer{200, {{"app", app}}};
  }
  void set_app(json now) {
    const std::lock_guard lock(mutex_);
    app = std::move(now);
  }
  json shown() {
    const std::lock_guard lock(mutex_);
    return app;
  }
  std::vector<std::string> changes() {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  std::atomic<bool> away = false;

 private:
  std::mutex mutex_;
  json app;
  int version_ = 0;
  std::vector<std::string> changes_;
};

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() {
    api_.honour_finalizers();
    start();
  }
  void start() {
    using std::chrono::milliseconds;
    keeper_ = std::make_unique<Keeper>(
        api_, KeeperOptions{.ask = [this](const auto& user, const auto& call,
                                          const auto&) { return daemon_.ask(user, call); },
                            .user_of = [](const std::string& name) -> Result<User> {
                              if (name != "drover-ann") return fail(ErrorKind::kNotFound, "it is no user's");
                              return User{.uid = 5, .name = "ann"};
                            },
                            .log = [](const auto&) {},
                            .between = milliseconds(5),
                            .again = milliseconds(5),
                            .look_again = milliseconds(20)});
  }
  void create(const json& spec, const std::string& name_space = "drover-ann") {
    ASSERT_TRUE(api_.create({kApps, name_space},
                            {{"apiVersion", "drover.dev/v1alpha1"},
                             {"kind", "App"},
                             {"metadata", {{"name", "web"}, {"namespace", name_space}, {"generation", 1}}},
                             {"spec", spec}}));
  }
  void change(const json& spec, int generation) {
    ASSERT_TRUE(api_.patch({kApps, "drover-ann", "web"}, kube::PatchType::kMerge,
                           {{"metadata", {{"generation", generation}}}, {"spec", spec}}));
  }
  json condition(const std::string& name_space = "drover-ann") {
    const auto object = api_.get({kApps, name_space, "web"});
    return object ? object->value("/status/conditions/0"_json_pointer, json::object()) : json::object();
  }
  bool accepted_at(int generation) {
    const auto now = condition();
    return now.value("status", "") == "True" && now.value("observedGeneration", 0) == generation;
  }
  kube::testing::FakeApi api_;
  FakeDaemon daemon_;
  std::unique_ptr<Keeper> keeper_;
};

TEST_F(KeeperTest, MakesChangesAndTakesAway) {
  create({{"cmd", "one"}});
  ASSERT_TRUE(eventually([&] { return accepted_at(1); })) << condition();
  EXPECT_EQ(daemon_.shown()["cmd"], "one");
  change({{"cmd", "two"}}, 2);
  ASSERT_TRUE(eventually([&] { return accepted_at(2); }));
  EXPECT_EQ(daemon_.shown()["cmd"], "two");
  ASSERT_TRUE(api_.remove({kApps, "drover-ann", "web"}));
  EXPECT_TRUE(eventually([&] { return !api_.get({kApps, "drover-ann", "web"}); }));
  EXPECT_TRUE(daemon_.shown().is_null());
  EXPECT_EQ(daemon_.changes(), (std::vector<std::string>{"ann POST", "ann PUT", "ann DELETE"}));
}

TEST_F(KeeperTest, AMistakeIsToldAndWhatRunsGoesOn) {
  create({{"cmd", "one"}});
  ASSERT_TRUE(eventually([&] { return accepted_at(1); }));
  change({{"mistake", true}}, 2);
  ASSERT_TRUE(eventually([&] { return condition().value("reason", "") == "Invalid"; }));
  EXPECT_THAT(condition().value("message", ""), HasSubstr("/mistake"));
  EXPECT_EQ(daemon_.shown()["cmd"], "one");
}

TEST_F(KeeperTest, WhatIsInNobodysNamespaceIsRefusedAndNotHeld) {
  create({{"cmd", "one"}}, "default");
  ASSERT_TRUE(eventually([&] { return condition("default").value("reason", "") == "NoSuchUser"; }));
  EXPECT_THAT(daemon_.changes(), IsEmpty());
  ASSERT_TRUE(api_.remove({kApps, "default", "web"}));
  EXPECT_FALSE(api_.get({kApps, "default", "web"}));
}

TEST_F(KeeperTest, WhatSomebodyChangesIsPutRight) {
  create({{"cmd", "one"}});
  ASSERT_TRUE(eventually([&] { return accepted_at(1); }));
  auto app = daemon_.shown();
  app.merge_patch({{"cmd", "theirs"}, {"version", "theirs"}});
  daemon_.set_app(app);
  EXPECT_TRUE(eventually([&] { return daemon_.shown()["cmd"] == "one"; }));
}

TEST_F(KeeperTest, WhatOthersMadeIsLeftUntilItIsGone) {
  daemon_.set_app({{"id", "/web"}, {"cmd", "theirs"}, {"version", "1"}});
  create({{"cmd", "one"}});
  ASSERT_TRUE(eventually([&] { return condition().value("reason", "") == "Exists"; }));
  EXPECT_EQ(daemon_.shown()["cmd"], "theirs");
  EXPECT_THAT(daemon_.changes(), IsEmpty());
  daemon_.set_app(nullptr);
  EXPECT_TRUE(eventually([&] { return accepted_at(1); }));
}

TEST_F(KeeperTest, GoesOnAfterARestartWhereverItWas) {
  create({{"cmd", "one"}});
  ASSERT_TRUE(eventually([&] { return accepted_at(1); }));
  keeper_.reset();
  change({{"cmd", "two"}}, 2);
  ASSERT_TRUE(
      api_.patch({kApps, "drover-ann", "web", "status"}, kube::PatchType::kMerge, {{"status", nullptr}}));
  start();
  ASSERT_TRUE(eventually([&] { return accepted_at(2); }));
  EXPECT_EQ(daemon_.shown()["cmd"], "two");
  keeper_.reset();
  ASSERT_TRUE(api_.remove({kApps, "drover-ann", "web"}));
  EXPECT_TRUE(api_.get({kApps, "drover-ann", "web"})) << "held while nobody is there";
  start();
  EXPECT_TRUE(
      eventually([&] { return daemon_.shown().is_null() && !api_.get({kApps, "drover-ann", "web"}); }));
}

TEST_F(KeeperTest, ADaemonThatDoesNotAnswerIsWaitedFor) {
  daemon_.away = true;
  create({{"cmd", "one"}});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(condition().empty());
  daemon_.away = false;
  EXPECT_TRUE(eventually([&] { return accepted_at(1); }));
}

TEST_F(KeeperTest, AnUninstalledOneLetsGo) {
  create({{"cmd", "one"}});
  ASSERT_TRUE(eventually([&] { return accepted_at(1); }));
  keeper_.reset();
  ASSERT_TRUE(release_definitions(api_));
  ASSERT_TRUE(api_.remove({kApps, "drover-ann", "web"}));
  EXPECT_FALSE(api_.get({kApps, "drover-ann", "web"}));
  EXPECT_EQ(daemon_.shown()["cmd"], "one");
}

TEST_F(KeeperTest, WhatFailsIsTriedAgain) {
  keeper_.reset();
  create({{"cmd", "one"}});
  api_.fail_next({{ErrorKind::kUnavailable, "away", "", ""}, {ErrorKind::kConflict, "changed", "", ""}});
  start();
  EXPECT_TRUE(eventually([&] { return accepted_at(1); }));
}

}  // namespace
}  // namespace drover::objects
