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
#include <thread>

#include "container/oci_launcher.h"
#include "container/shim_containerizer.h"

namespace drover::container {

/// Collects what a Watcher hears. Thread safe.
class TaskObserver {
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

/// Options for a state folder, with this program as the shim. An image reference lists its layers' folders,
/// lowest first, with commas between.
inline OciOptions test_options(const std::string& state) {
  OciOptions options;
  options.state = state;
  options.launching.executable = std::filesystem::read_symlink("/proc/self/exe");
  options.launching.prepare_image = [](const std::string& reference, const User&,
                                       const auto&) -> Result<image::Image> {
    image::Image image;
    image.reference = reference;
    std::istringstream layers(reference);
    for (std::string layer; std::getline(layers, layer, ',');) image.layers.push_back(layer);
    return image;
  };
  return options;
}

struct MadeOci {
  std::unique_ptr<ShimContainerizer> containerizer;
  const OciLauncher* launcher = nullptr;  ///< owned by the containerizer
};

inline Result<MadeOci> make_oci(OciOptions options, Watcher watcher) {
  const auto state = options.state;
  DROVER_TRY(auto launcher, OciLauncher::create(std::move(options)));
  MadeOci made;
  made.launcher = launcher.get();
  DROVER_TRY(made.containerizer, ShimContainerizer::create(state, std::move(launcher), std::move(watcher)));
  return made;
}

/// A task of root's.
inline Launch test_launch(const std::string& id, std::vector<std::string> command) {
  Launch launch;
  launch.task.id = id;
  launch.task.command = std::move(command);
  launch.task.user = User{0, 0, {}, "root", "/root"};
  launch.task.resources.memory_bytes = 256ULL << 20;
  return launch;
}

/// The task of run_test_daemon(): it leaves a trace of every start.
inline Launch traced_launch(const std::string& id) {
  return test_launch(id, {"/bin/sh", "-c", "echo ran >> trace; sleep 0.2; exit 5"});
}

/// See main_test.cc.
inline int run_test_daemon(const std::string& state, const std::string& id) {
  TaskObserver observer;
  auto made = make_oci(test_options(state), observer.watcher());
  if (!made || !made->containerizer->launch(traced_launch(id))) return EXIT_FAILURE;
  while (true) ::pause();
}

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
    if (!runtimes().back().works())
      GTEST_SKIP() << "needs an OCI runtime: " << no_runtime(runtimes()).message;
  }

  void TearDown() override {
    if (state_.empty()) return;
    if (oci_)
      for (const auto& id : oci_->known()) EXPECT_TRUE(oci_->forget(id));
    EXPECT_FALSE(observer_.disorder());
    oci_.reset();
    std::filesystem::remove_all(state_);
  }

  OciOptions options() const { return test_options(state_); }

  void open() { open(options()); }
  void open(OciOptions given) {
    auto made = make_oci(std::move(given), observer_.watcher());
    ASSERT_TRUE(made) << to_string(made.error());
    oci_ = std::move(made->containerizer);
    launcher_ = made->launcher;
  }

  std::vector<RuntimeReport> runtimes() const { return launcher_->runtimes(); }

  /// Unique on this machine: several test programs may run at once.
  std::string id_of(const std::string& name) const {
    return name + "-" + std::filesystem::path(state_).filename().string();
  }
  Launch launch_of(const std::string& name, std::vector<std::string> command) const {
    return test_launch(id_of(name), std::move(command));
  }

  /// Launches and waits for the end; an Error ends the test.
  Ending run(const Launch& launch) {
    const auto launched = oci_->launch(launch);
    EXPECT_TRUE(launched) << to_string(launched.error());
    if (!launched) return {};
    const auto ending = observer_.await_ending(launch.task.id);
    EXPECT_TRUE(ending) << "the task did not end";
    return ending.value_or(Ending{});
  }

  std::string sandbox_file(const std::string& id, const std::string& name) const {
    std::ifstream file(oci_->sandbox(id) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TaskObserver observer_;
  std::string state_;
  std::unique_ptr<ShimContainerizer> oci_;
  const OciLauncher* launcher_ = nullptr;  ///< its own
};

}  // namespace drover::container
