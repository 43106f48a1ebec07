#pragma once

// Marathon's and Chronos' APIs as commands see them, answered by the test.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/testing/fake_api.h"
#include "cli/testing/run.h"
#include "marathon/app.h"

namespace drover::cli::testing {

using nlohmann::json;

/// The app as the API shows it.
inline json app_json(const std::string& definition, const json& more = json::object()) {
  const auto app = marathon::decode_app(json::parse(definition), {});
  auto shown = json::parse(marathon::show(app->service));
  shown["tasksRunning"] = shown["instances"];
  shown["version"] = "2026-01-02T00:00:00.000Z";
  shown.update(more);
  return shown;
}

class ServicesFixture : public ::testing::Test {
 protected:
  ServicesFixture()
      : api_("/tmp/drover-services-test." + std::to_string(::getpid()),
             [this](const FakeApi::Asked& asked) { return answer(asked); }) {}

  Ran ask(std::vector<std::string> words) {
    words.insert(words.begin(), {"--socket", api_.socket()});
    return testing::drover(words);
  }
  std::string file(const std::string& name, const std::string& text) {
    const auto path = ::testing::TempDir() + "services-" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  /// What is answered to a GET.
  void there_is(const std::string& target, const json& value) { there_[target] = value.dump(); }
  void there_is_app(const json& app) {
    there_is("/v2/apps" + app.value("id", ""), {{"app", app}});
    apps_.push_back(app);
    there_is("/v2/apps", {{"apps", apps_}});
  }

  FakeApi::Answer answer(const FakeApi::Asked& asked) {
    if (asked.method != "GET") {
      if (asked.target == "/v1/dry-run") return {200, json{{"answers", {tried_}}}.dump()};
      if (refusal_.status != 200) return refusal_;
      after_change_();
      const bool marathon = asked.target.starts_with("/v2/");
      return {marathon ? 200u : 204u,
              marathon ? R"({"version":"2026-01-03T00:00:00.000Z","deploymentId":"d-1"})" : ""};
    }
    if (asked.target == "/v2/deployments") on_look_();
    if (const auto found = there_.find(asked.target); found != there_.end()) return {200, found->second};
    if (asked.target == "/v2/deployments") return {200, looks_under_way_-- > 0 ? R"([{"id":"d-1"}])" : "[]"};
    if (asked.target == "/v2/queue") return {200, R"({"queue":[]})"};
    if (asked.target == "/v2/apps") return {200, R"({"apps":[]})"};
    if (asked.target == "/v1/scheduler/jobs") return {200, "[]"};
    if (asked.target.starts_with("/v1/"))
      return {400, R"({"status":"Bad Request","message":"java.lang.IllegalArgumentException: )"
                   R"(requirement failed: Job 'x' not found"})"};
    return {404, R"({"message":"App '/x' does not exist"})"};
  }

  std::map<std::string, std::string> there_;
  std::vector<json> apps_;
  std::function<void()> after_change_ = [] {};
  std::function<void()> on_look_ = [] {};  ///< at deployments
  FakeApi::Answer refusal_;                ///< of changes, unless it is 200
  json tried_ = {{"status", 200}};         ///< of a dry run
  int looks_under_way_ = 0;                ///< how often a deployment is still there
  FakeApi api_;                            ///< last: it asks the others
};

}  // namespace drover::cli::testing
