#pragma once

// Several containers with shares of one GPU's time, their pages, and who gives them turns.

#include <atomic>
#include <chrono>
#include <thread>

#include "base/fd.h"
#include "guard/testing/container.h"
#include "share/turn_keeper.h"

namespace drover::guard {

using namespace std::chrono_literals;

/// What a process of a container has launched; all zero is a valid state.
struct Progress {
  std::atomic<std::uint64_t> launched_us;
  std::atomic<std::uint64_t> launches;
  std::atomic<bool> stop;
};

/// Calls of simulated CUDA's kernel that keeps the GPU busy.
class Spinner {
 public:
  explicit Spinner(Client& client) : client_(client) {
    const auto text = ".version 7.0\n.visible .entry spin(.param .u64 x){ret;}";
    CUmodule module = nullptr;
    EXPECT_EQ(CALL(client.cuda, cuModuleLoadData)(&module, text), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client.cuda, cuModuleGetFunction)(&function, module, "spin"), CUDA_SUCCESS);
  }
  CUresult launch(std::uint64_t us, CUstream stream = nullptr) {
    void* parameters[] = {&us};
    return CALL(client_.cuda, cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  CUresult launch_per_thread(std::uint64_t us) {
    void* parameters[] = {&us};
    return CALL(client_.cuda, cuLaunchKernel_ptsz)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                                                   nullptr);
  }
  CUresult launch_cooperative(std::uint64_t us) {
    void* parameters[] = {&us};
    return CALL(client_.cuda, cuLaunchCooperativeKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters);
  }
  CUresult launch_with_config(std::uint64_t us) {
    void* parameters[] = {&us};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    return CALL(client_.cuda, cuLaunchKernelEx)(&config, function, parameters, nullptr);
  }
  /// A graph that was captured, of one kernel.
  CUgraphExec graph(std::uint64_t us) {
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    EXPECT_EQ(CALL(client_.cuda, cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client_.cuda, cuStreamBeginCapture_v2)(stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(launch(us, stream), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client_.cuda, cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client_.cuda, cuGraphInstantiateWithFlags)(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client_.cuda, cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
    return exec;
  }
  CUresult launch_graph(CUgraphExec exec) { return CALL(client_.cuda, cuGraphLaunch)(exec, nullptr); }

  CUfunction function = nullptr;

 private:
  Client& client_;
};

class SharedGpu : public Container {
 protected:
  ~SharedGpu() override {
    for (const auto& [name, process] : processes_) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }

  /// A container with a share of the first GPU's time, and 8 GiB of its memory.
  void add(const std::string& name, int milli, bool strict = false) {
    limit({{0, 8 * kGib}});
    auto& box = boxes_.emplace_back();
    box.name = name;
    std::filesystem::rename(folder_ / "limits", folder_ / (name + ".limits"));
    fill(folder_ / (name + ".account"), std::string(sizeof(guard_account), '\0'));
    box.limits.reset(::open((folder_ / (name + ".limits")).c_str(), O_RDWR | O_CLOEXEC));
    box.account.reset(::open((folder_ / (name + ".account")).c_str(), O_RDONLY | O_CLOEXEC));
    const auto thousandths = static_cast<std::uint32_t>(milli);
    const auto place = offsetof(guard_limits, turns) + offsetof(guard_turn, milli);
    ASSERT_EQ(::pwrite(box.limits.get(), &thousandths, sizeof(thousandths), static_cast<off_t>(place)),
              static_cast<ssize_t>(sizeof(thousandths)));
    box.progress = shared<Progress>();
    contenders_.push_back({uuid(0), name, box.limits.get(), box.account.get(), 0, milli, strict});
  }
  void give_turns() { ASSERT_TRUE(turns_.set(contenders_)); }

  /// Starts a process of a container, with a context.
  void start_in(const std::string& name, const std::function<void(Client&, Progress&)>& body) {
    auto& progress = progress_of(name);
    processes_.emplace_back(name, start([&, body](Client& client) {
                              ::setenv("DROVER_GUARD_LIMITS", (folder_ / (name + ".limits")).c_str(), 1);
                              ::setenv("DROVER_GUARD_ACCOUNT", (folder_ / (name + ".account")).c_str(), 1);
                              client.start();
                              if (!HasFailure()) body(client, progress);
                            }));
  }
  /// One that launches kernels of one length as fast as it may.
  void start_spinning(const std::string& name, std::uint64_t us) {
    start_in(name, [us](Client& client, Progress& progress) {
      Spinner spinner(client);
      while (!progress.stop) {
        ASSERT_EQ(spinner.launch(us), CUDA_SUCCESS);
        progress.launched_us += us;
        ++progress.launches;
      }
    });
  }
  void stop_all() {
    for (auto& box : boxes_) box.progress->stop = true;
    for (const auto& [name, process] : std::exchange(processes_, {})) finish(process);
  }

  Progress& progress_of(const std::string& name) {
    return *std::ranges::find(boxes_, name, [](const Box& box) { return box.name; })->progress;
  }
  pid_t process_of(const std::string& name) const {
    for (const auto& [its, process] : processes_)
      if (its == name) return process;
    return -1;
  }
  /// GPU time that each got while the test waits so long, in microseconds, from when all have begun.
  std::map<std::string, double> measure(std::chrono::milliseconds time) {
    for (auto& box : boxes_)
      for (int i = 0; i < 1000 && box.progress->launches == 0 && process_of(box.name) > 0; ++i)
        std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(300ms);
    std::map<std::string, double> used;
    for (auto& box : boxes_) used[box.name] = -static_cast<double>(box.progress->launched_us);
    std::this_thread::sleep_for(time);
    for (auto& box : boxes_) used[box.name] += static_cast<double>(box.progress->launched_us);
    return used;
  }
  /// Measures until a container has about so many hundredths of what all get: a machine that is busy with
  /// other things may keep a process from launching for a while.
  void expect_percent(const std::string& name, double wanted, double off) {
    double percents = 0;
    for (int tries = 0; tries < 6 && (tries == 0 || std::abs(percents - wanted) > off); ++tries) {
      percents = percent(measure(1500ms), name);
      RecordProperty(name, std::to_string(percents));
    }
    EXPECT_NEAR(percents, wanted, off) << name;
  }
  static double percent(const std::map<std::string, double>& used, const std::string& name) {
    double all = 0;
    for (const auto& [its, time] : used) all += time;
    return all > 0 ? 100 * used.at(name) / all : 0;
  }
  share::TurnFigures figures_of(const std::string& name) const {
    for (const auto& figures : turns_.figures())
      if (figures.turns.name == name) return figures.turns;
    return {};
  }

  struct Box {
    std::string name;
    UniqueFd limits, account;
    Progress* progress = nullptr;
  };
  std::vector<Box> boxes_;
  std::vector<share::Contender> contenders_;
  std::vector<std::pair<std::string, pid_t>> processes_;
  share::Turns turns_;
};

}  // namespace drover::guard
