#pragma once

// Looks at all tasks that run, once a second, on one thread: at their control groups, their networks and
// their GPUs. What it sees goes into the file in the task's folder (file.h) and into the figures of its whole
// life. It sleeps while no task runs, and looks less often where that would take more than a tenth of a
// processor. The driver is asked once for each GPU, not for each task; one that does not answer is waited for
// once, and holds up nothing but its own figures (gpu/usage_sampler.h). Thread safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log_once.h"
#include "container/cgroup.h"
#include "gpu/strangers.h"
#include "gpu/usage_sampler.h"
#include "use/file.h"
#include "use/group.h"

namespace drover::use {

/// A GPU of a task, or what it has of it.
struct HeldGpu {
  gpu::Device device;
  bool whole = true;  ///< what the GPU does is what the task does
  bool told = true;   ///< the driver tells for whom it works: not of parts, nor through a server of MPS
};

struct Watched {
  std::string task;  ///< id
  pid_t first = 0;   ///< process of its container; 0: not known
  std::vector<HeldGpu> gpus;
};

/// As of the last look at a task that runs.
struct Latest {
  GroupReading reading;    ///< with the network; what its container was counted since it began
  std::uint32_t time = 0;  ///< seconds since 1970; 0: nobody has looked yet
};

struct SamplerOptions {
  std::string tasks;  ///< where their folders are
  std::vector<container::Hierarchy> hierarchies;
  gpu::UsageSampler::Library nvml;
  /// Makes what says whose a process is, for those who share GPUs.
  std::function<gpu::TaskOf(const std::vector<Watched>&)> owners;
  std::function<void(const std::string& line)> log;  ///< what went wrong, once; may be absent
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// It runs from now on, or did before this program was started. Quick.
  void begin(Watched task);
  /// It has ended: what it used, also as an earlier life of this program has seen it; none where nothing was
  /// seen. Reads a file of its folder.
  std::optional<workload::Use> end(const std::string& task);
  /// It has ended for whoever has told of its beginning, which may have been after end(). Quick.
  void forget(const std::string& task);
  std::map<std::string, Latest> latest() const;
  /// As read_history(), of a task that runs or has ended.
  Result<History> history(const std::string& task, std::size_t resolution, std::uint32_t from,
                          std::uint32_t until) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Task;
  using Tasks = std::map<std::string, std::shared_ptr<Task>>;
  struct Work;  ///< of GPUs

  void run();
  std::chrono::nanoseconds look(const std::vector<std::shared_ptr<Task>>& tasks);
  Work look_at_gpus(const std::vector<std::shared_ptr<Task>>& tasks);
  void look_at(Task& task, const Work& work);

  const SamplerOptions options_;
  gpu::UsageSampler gpus_;
  LogOnce trouble_;
  mutable std::mutex mutex_;  ///< of the three below
  std::condition_variable changed_;
  bool stopped_ = false;
  Tasks tasks_;
  std::thread thread_;
};

}  // namespace drover::use
