#pragma once

// Looks at shared GPUs, ten times a second, and says what the referee decides; and at the pages of guarded
// tasks, whose processes it tells how the driver numbers them, and whose turns on the GPU it has given
// (turn_keeper.h). What the pages say, it makes agree with the shares. A thread of its own, which
// sleeps while no GPU is shared; the driver is asked as everywhere (gpu/usage_sampler.h), so one that does
// not answer holds up neither this nor the other GPUs for longer than a look. Thread safe.
//
//   share::Watch watch([&] { return hardware.shared_nvml(); }, share::Punishment::kReport,
//                      [&](auto verdicts) { post(…); });
//   watch.set({devices, allowances, [] { return owners_of_processes; }});

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu/strangers.h"
#include "gpu/usage_sampler.h"
#include "share/pages.h"
#include "share/referee.h"
#include "share/turn_keeper.h"

namespace drover::share {

/// What shares say of a GPU's time: each gets his, and what others do not want; no more than his; nothing.
enum class TimeShares { kLend, kStrict, kFree };

/// Where a task has its pages, and what they are to say; none: they stay as they are.
struct GuardedTask {
  std::string folder;
  std::vector<Limit> limits = {};

  bool operator==(const GuardedTask&) const = default;
};

/// What there is to watch over.
struct Shares {
  std::vector<gpu::Device> gpus;  ///< those that are shared
  std::vector<Allowance> allowances;
  /// Makes what says whose a process is. Called once, on the thread of the watch.
  std::function<gpu::TaskOf()> owners;
  std::map<std::string, GuardedTask> guarded;  ///< by an allowance's name: who has its pages (pages.h)
  TimeShares time = TimeShares::kLend;         ///< of those with pages
};

/// What the guard counts.
struct Counted {
  std::uint64_t charged = 0;  ///< bytes
  std::uint64_t refused = 0;  ///< requests for memory, since there are pages
};

/// As of the last look.
struct Figures {
  std::vector<Account> accounts;
  /// Of each task with pages, by task and the GPU's UUID.
  std::map<std::string, std::map<std::string, Counted>> counted;
  std::vector<Turns::Figures> turns;                  ///< by their names: tasks
  std::map<std::string, std::uint64_t> unattributed;  ///< bytes, by UUID of GPUs that are shared
};

/// When the process was started, in ticks of the kernel, and its control groups. A process whose first thread
/// has ended while others go on is where those are. `proc` is a folder that is mounted as /proc.
struct ProcessPlace {
  std::uint64_t born = 0;  ///< 0: it is not there
  std::string cgroups;     ///< as of /proc/PID/cgroup
};
ProcessPlace place_of(const std::string& proc, std::uint32_t pid);

class Watch {
 public:
  /// `tell` hears of verdicts on the thread of the watch; it does not block, and outlives this.
  Watch(gpu::UsageSampler::Library library, Punishment punishment,
        std::function<void(std::vector<Verdict>)> tell, std::string proc = "/proc");
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// From now on these; none: it sleeps.
  void set(Shares shares);
  Figures figures() const;

 private:
  void run();
  Looks look(const std::vector<gpu::Device>& gpus, const gpu::TaskOf& task_of);
  bool keep_pages(const std::map<std::string, GuardedTask>& tasks);
  void give_turns(TimeShares time);
  std::map<std::string, std::map<std::string, Counted>> look_at_pages();

  const std::string proc_;
  const std::function<void(std::vector<Verdict>)> tell_;
  gpu::UsageSampler sampler_;
  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  std::optional<Shares> next_;  ///< set, and not taken yet
  bool stopped_ = false;
  Referee referee_;
  std::map<std::string, std::map<std::string, Counted>> counted_;
  std::map<std::string, Pages> pages_;  ///< by task; of the thread alone
  Turns turns_;
  std::thread thread_;
};

}  // namespace drover::share
