#pragma once

// A PodContainerizer over an API server in memory, what it tells, and a node that is played by the test.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/fake_tree.h"
#include "kube/client/testing/fake_api.h"
#include "pods/pod_containerizer.h"
#include "pods/testing/tasks.h"

namespace drover::pods::testing {

/// What the watcher is told, in order, as lines.
class Told {
 public:
  container::Watcher watcher() {
    container::Watcher watcher;
    watcher.started = [this](const auto& id, const container::Running& running) {
      add(fmt::format("started {}{}{}", id, running.tier.empty() ? "" : " ", running.tier));
    };
    watcher.ended = [this](const auto& id, const workload::Ending& ending) {
      add(fmt::format("ended {}{}{}{}{}", id, ending.lost ? " lost" : fmt::format(" {}", ending.exit_status),
                      ending.stopped ? " stopped" : "", ending.message.empty() ? "" : ": ", ending.message));
    };
    watcher.log = [this](const auto& line) { add("log " + line); };
    watcher.placed = [this](const auto& id, int attempt, const auto& place) {
      add(fmt::format("placed {} {} {} {}", id, attempt, place.node, fmt::join(place.gpus, ",")));
    };
    watcher.waits = [this](const auto& id, const auto& why) { add(fmt::format("waits {}: {}", id, why)); };
    watcher.evicted = [this](const auto& id, int attempt, const auto& why) {
      add(fmt::format("evicted {} {}: {}", id, attempt, why));
    };
    watcher.put_back = [this](const auto& id, int attempt, const auto& why) {
      add(fmt::format("put back {} {}: {}", id, attempt, why.message));
    };
    watcher.failed = [this](const auto& id, int attempt, const auto& why) {
      add(fmt::format("failed {} {}: {}", id, attempt, why.message));
    };
    return watcher;
  }
  /// Until there are so many lines.
  std::vector<std::string> lines(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

/// The task "t" of ann, attempt by attempt.
class PodLife : public ::testing::Test {
 protected:
  void begin() {
    PodContainerizerOptions options{
        .pods = {.journal = "j"}, .state = folder_.root(), .watcher = told_.watcher()};
    options.again = std::chrono::milliseconds(20);
    options.streams.last_words = std::chrono::seconds(2);
    options.agents = agents_;
    options.overdue = std::chrono::milliseconds(0);
    auto made = PodContainerizer::create(api_, std::move(options));
    ASSERT_TRUE(made) << made.error().message;
    pods_ = std::move(*made);
  }
  void SetUp() override {
    api_.honour_finalizers();
    begin();
  }

  static container::Launch launch_of(int attempt = 0) {
    container::Launch launch;
    launch.task = task_of_ann("t", 2);
    launch.task.user = {::geteuid(), ::getegid(), {}, "ann", "/"};
    launch.attempt = attempt;
    launch.record = "{}";
    return launch;
  }

  static kube::ObjectPath path(int attempt = 0) {
    return {kube::kPods, "drover-ann", pod_name("t", attempt)};
  }
  /// What the API server gives out as what the container has written.
  void node_logs(const std::string& text, int attempt = 0) {
    auto log = path(attempt);
    log.subresource = "log";
    api_.set_text(log, text);
  }
  std::optional<nlohmann::json> pod(int attempt = 0) {
    const auto found = api_.get(path(attempt));
    return found ? std::optional(*found) : std::nullopt;
  }
  void bind(int attempt = 0) {
    const nlohmann::json binding = {{"metadata", {{"annotations", {{"drover.dev/gpus", "GPU-1,GPU-3"}}}}},
                                    {"target", {{"name", "n1"}}}};
    auto where = path(attempt);
    where.subresource = "binding";
    ASSERT_TRUE(api_.create(where, binding));
  }
  void set_status(const nlohmann::json& status, int attempt = 0) {
    ASSERT_TRUE(api_.patch(path(attempt), kube::PatchType::kMerge, {{"status", status}}));
  }
  static nlohmann::json container(const nlohmann::json& state) {
    return {{"containerStatuses", nlohmann::json::array({{{"name", "task"}, {"state", state}}})}};
  }
  void run(int attempt = 0) {
    set_status(container({{"running", {{"startedAt", "2026-11-27T14:00:00Z"}}}}), attempt);
  }
  void end(int status, int attempt = 0) {
    set_status(container({{"terminated",
                           {{"exitCode", status},
                            {"startedAt", "2026-11-27T14:00:00Z"},
                            {"finishedAt", "2026-11-27T14:00:07Z"}}}}),
               attempt);
  }
  std::string output() { return read_file(pods_->sandbox("t") + "/stdout").value_or(""); }

  FakeTree folder_;
  Told told_;
  kube::testing::FakeApi api_;
  NodeAgents* agents_ = nullptr;
  std::unique_ptr<PodContainerizer> pods_;
};

}  // namespace drover::pods::testing
