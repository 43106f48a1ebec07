#pragma once

// For tests that run real containers: a state folder of their own, a containerizer over it, and what its
// Watcher heard. Skips without root or an OCI runtime.

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>

#include "container/oci.h"

namespace drover::container {

/// Collects what a Watcher hears. Thread safe.
class Heard {
 public:
  Watcher watcher() {
    return {[this](const std::string& id, Running running) {
              const std::lock_guard lock(mutex_);
              if (endings_.contains(id)) disorder_ = true;
              running_[id] = running;
              changed_.notify_all();
            },
            [this](const std::string& id, Ending ending) {
              const std::lock_guard lock(mutex_);
              if (!endings_.emplace(id, ending).second) disorder_ = true;
              changed_.notify_all();
            }};
  }

  std::optional<Ending> await_ending(const std::string& id, std::chrono::seconds timeout = kPatience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return endings_.contains(id); })) return std::nullopt;
    return endings_.at(id);
  }

  std::optional<Running> await_started(const std::string& id) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return running_.contains(id); })) return std::nullopt;
    return running_.at(id);
  }

  /// Whether anything was told twice, or a start after an end.
  bool disorder() const {
    const std::lock_guard lock(mutex_);
    return disorder_;
  }

  static constexpr std::chrono::seconds kPatience{60};

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Running> running_;
  std::map<std::string, Ending> endings_;
  bool disorder_ = false;
};

class OciFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to run containers";
    char folder[] = "/tmp/drover-container-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    state_ = static_cast<char*>(folder);
    std::filesystem::permissions(state_, std::filesystem::perms(0711));
    open();
    if (HasFatalFailure()) return;
    if (!oci_->runtimes().back().works())
      GTEST_SKIP() << "needs an OCI runtime: " << no_runtime(oci_->runtimes()).message;
  }

  void TearDown() override {
    if (state_.empty()) return;
    if (oci_)
      for (const auto& id : oci_->known()) EXPECT_TRUE(oci_->forget(id));
    EXPECT_FALSE(heard_.disorder());
    oci_.reset();
    std::filesystem::remove_all(state_);
  }

  OciOptions options() const {
    OciOptions options;
    options.state = state_;
    options.launching.executable = std::filesystem::read_symlink("/proc/self/exe");
    options.launching.prepare_image = [](const std::string& reference, const User&) -> Result<image::Image> {
      image::Image image;
      image.reference = reference;
      std::istringstream layers(reference);
      for (std::string layer; std::getline(layers, layer, ',');) image.layers.push_back(layer);
      return image;
    };
    return options;
  }

  void open() { open(options()); }
  void open(OciOptions given) {
    auto made = OciContainerizer::create(std::move(given), heard_.watcher());
    ASSERT_TRUE(made) << to_string(made.error());
    oci_ = std::move(*made);
  }

  /// Ids are unique on this machine: several test programs may run at once.
  Launch launch_of(const std::string& name, std::vector<std::string> command) const {
    Launch launch;
    launch.task.id = name + "-" + std::filesystem::path(state_).filename().string();
    launch.task.name = name;
    launch.task.command = std::move(command);
    launch.task.user = User{0, 0, {}, "root", "/root"};
    launch.task.resources.memory_bytes = 256ULL << 20;
    return launch;
  }

  /// Launches and waits for the end; an Error ends the test.
  Ending run(const Launch& launch) {
    const auto launched = oci_->launch(launch);
    EXPECT_TRUE(launched) << to_string(launched.error());
    if (!launched) return {};
    const auto ending = heard_.await_ending(launch.task.id);
    EXPECT_TRUE(ending) << "the task did not end";
    return ending.value_or(Ending{});
  }

  std::string sandbox_file(const std::string& id, const std::string& name) const {
    std::ifstream file(oci_->sandbox(id) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Heard heard_;
  std::string state_;
  std::unique_ptr<OciContainerizer> oci_;
};

}  // namespace drover::container
