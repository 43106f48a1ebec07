#pragma once

// Who has GPUs open that are not his: such GPUs are given to nobody. All GPUs are looked at now and then, and
// those of a task before it starts. Owned by the control strand; the probes, which see every process of the
// machine, are made on the pool.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ports.h"
#include "engine/processes.h"

namespace drover::engine {

class Strangers {
 public:
  using Probe = decltype(Ports::strangers);  ///< may be empty: then nobody is looked for

  /// `changed` is called when found() is another. All of it outlives this and what it has on the pool.
  Strangers(const Loop& loop, const Probe& probe, const Processes& processes, Work changed)
      : loop_(loop), probe_(probe), processes_(processes), changed_(std::move(changed)) {}

  /// Why a GPU is not given, by UUID.
  const std::map<std::string, std::string>& found() const { return found_; }
  /// Looks at all of these, unless that was done lately or is being done.
  void inspect(const std::vector<gpu::Device>& devices);
  /// Looks on the pool while a start is prepared. Told on the pool, when it is ready: why the GPUs may not be
  /// given now.
  std::function<std::optional<Error>()> check_before_start(const std::vector<gpu::Device>& devices);

 private:
  void take(std::map<std::string, std::string> found);
  std::optional<Error> refuse(const std::vector<gpu::Device>& devices,
                              const std::vector<TaskProcesses>& tasks);

  const Loop& loop_;
  const Probe& probe_;
  const Processes& processes_;
  Work changed_;
  std::map<std::string, std::string> found_;
  bool probing_ = false;
  TimePoint next_{};  ///< not before
};

}  // namespace drover::engine
