#include "use/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/files.h"
#include "base/instant.h"

namespace drover::use {
namespace {

constexpr std::chrono::milliseconds kInterval = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kPatience{500};  // with the driver
constexpr int kPartOfTime = 10;
constexpr double kSoonest = 0.5;  // seconds: what is nearer to the start says little
constexpr double kLongest = 10;   // that one look speaks for

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The middle of the next second: so each second has one look, though both clocks run unevenly.
std::chrono::milliseconds until_next() {
  const auto now = wall_clock().time_since_epoch();
  const auto middle = std::chrono::floor<std::chrono::seconds>(now) + kInterval / 2;
  return std::chrono::ceil<std::chrono::milliseconds>(now < middle ? middle - now : middle + kInterval - now);
}

std::optional<double> rate(std::uint64_t since, double seconds) {
  if (since == kUncounted || seconds <= 0) return std::nullopt;
  return static_cast<double>(since) / seconds;
}

}  // namespace

struct Sampler::Task {
  explicit Task(Watched what) : watched(std::move(what)) {}

  const Watched watched;
  std::mutex mutex;  ///< of all below
  Clock::time_point looked_at = Clock::now();
  bool begun = false, over = false;
  std::optional<File> file;  ///< none: it could not be opened
  Totals totals;
  Group group;
  std::optional<OwnNetwork> network;
  bool was_seen = false;  ///< by an earlier life of this program
  Latest latest;

  Status begin(const SamplerOptions& options);
  GroupReading read() const;
  Status keep(const Slot& slot, double seconds);
};

Status Sampler::Task::begin(const SamplerOptions& options) {
  if (std::exchange(begun, true)) return {};
  group = Group::find(options.hierarchies, watched.task, watched.first);
  network = OwnNetwork::find(watched.task, watched.first);
  totals.gpus = watched.gpus.size();
  DROVER_TRY(const auto folder, Directory::open(options.tasks + "/" + watched.task));
  DROVER_TRY(file, File::open(folder));
  totals = file->totals();
  totals.gpus = watched.gpus.size();
  const auto first = static_cast<std::uint64_t>(watched.first);
  was_seen = totals.first == first && totals.seconds > 0;
  if (!was_seen) totals.last = {};  // another container, whose counters begin anew
  totals.first = first;
  return {};
}

GroupReading Sampler::Task::read() const {
  auto reading = group.read();
  if (network) network->read(reading.counters);
  return reading;
}

/// The values speak for the seconds before them.
Status Sampler::Task::keep(const Slot& slot, double seconds) {
  totals.seconds += seconds;
  for (std::size_t column = 0; column < kWithMost; ++column)
    if (slot.mean[column]) totals.figures[column].add(*slot.mean[column], seconds);
  if (!file) return {};
  DROVER_CHECK_OK(file->add(slot));
  return file->write(totals);
}

struct Sampler::Work {
  std::map<std::string, gpu::GpuUsage> gpus;       ///< by UUID
  std::map<std::uint32_t, std::string> processes;  ///< whose they are, of shared GPUs

  /// Of one GPU what a task does there.
  std::optional<double> percent(const std::string& task, const HeldGpu& held) const;
  std::optional<double> memory(const std::string& task, const HeldGpu& held) const;
  bool is_of(const gpu::ProcessUsage& process, const std::string& task) const {
    const auto found = processes.find(process.pid);
    return found != processes.end() && found->second == task;
  }
  const gpu::GpuUsage* find(const HeldGpu& held) const {
    const auto found = gpus.find(held.device.uuid);
    return found == gpus.end() || !found->second.answers ? nullptr : &found->second;
  }
};

std::optional<double> Sampler::Work::percent(const std::string& task, const HeldGpu& held) const {
  const auto* gpu = find(held);
  if (gpu == nullptr || !held.told) return std::nullopt;
  if (held.whole)
    return gpu->gpu_percent ? std::optional(static_cast<double>(*gpu->gpu_percent)) : std::nullopt;
  double sum = 0;
  for (const auto& process : gpu->processes) {
    if (!is_of(process, task)) continue;
    if (!process.sm_percent) return std::nullopt;
    sum += static_cast<double>(*process.sm_percent);
  }
  return std::min(sum, 100.0);
}

std::optional<double> Sampler::Work::memory(const std::string& task, const HeldGpu& held) const {
  const auto* gpu = find(held);
  if (gpu == nullptr || (held.whole && !held.told)) return std::nullopt;
  if (held.whole)
    return gpu->memory.used ? std::optional(static_cast<double>(*gpu->memory.used)) : std::nullopt;
  double sum = 0;
  for (const auto& process : gpu->processes) {
    if (!is_of(process, task)) continue;
    if (!process.memory_bytes) return std::nullopt;
    sum += static_cast<double>(*process.memory_bytes);
  }
  return sum;
}

Sampler::Sampler(SamplerOptions options)
    : options_(std::move(options)),
      gpus_(options_.nvml,
            {.patience = kPatience, .fresh = std::chrono::milliseconds(0), .look = gpu::Look::kWork}),
      trouble_(options_.log),
      thread_([this] { run(); }) {}

Sampler::~Sampler() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Sampler::begin(Watched task) {
  {
    const std::lock_guard lock(mutex_);
    auto& place = tasks_[task.task];
    place = std::make_shared<Task>(std::move(task));
  }
  changed_.notify_all();
}

std::optional<workload::Use> Sampler::end(const std::string& id) {
  std::shared_ptr<Task> task;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(id);
    if (found != tasks_.end()) {
      task = std::move(found->second);
      tasks_.erase(found);
    }
  }
  Totals totals;
  std::unique_lock<std::mutex> lock;
  if (task) lock = std::unique_lock(task->mutex);
  if (task) task->over = true;
  if (task && task->begun) {
    count_on(task->totals, task->read().counters);  // as far as it is still there
    totals = task->totals;
    // What the last seconds were cannot be told any more where this fails.
    if (task->file && task->file->finish()) (void)task->file->write(totals);
  } else if (const auto seen = history(id, 0, 1, 0)) {
    totals = seen->totals;
  }
  if (totals.seconds == 0 && totals.sum == Counters{}) return std::nullopt;
  return use_of(totals);
}

void Sampler::forget(const std::string& task) {
  const std::lock_guard lock(mutex_);
  tasks_.erase(task);
}

std::map<std::string, Latest> Sampler::latest() const {
  std::unique_lock lock(mutex_);
  const auto tasks = tasks_;
  lock.unlock();  // a task may be waiting for the disk
  std::map<std::string, Latest> latest;
  for (const auto& [id, task] : tasks) {
    const std::lock_guard its_lock(task->mutex);
    latest.emplace(id, task->latest);
  }
  return latest;
}

Result<History> Sampler::history(const std::string& task, std::size_t resolution, std::uint32_t from,
                                 std::uint32_t until) const {
  DROVER_TRY(const auto folder, Directory::open(options_.tasks + "/" + task));
  return read_history(folder, resolution, from, until);
}

void Sampler::run() {
  std::unique_lock lock(mutex_);
  std::chrono::nanoseconds rest{0};
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !tasks_.empty(); });
    const auto wake = Clock::now() + std::max<std::chrono::nanoseconds>(until_next(), rest);
    changed_.wait_until(lock, wake, [&] { return stopped_; });
    if (stopped_) return;
    std::vector<std::shared_ptr<Task>> tasks;
    for (const auto& [id, task] : tasks_) tasks.push_back(task);
    lock.unlock();
    rest = (kPartOfTime - 1) * look(tasks);
    lock.lock();
  }
}

/// How long it took, but for the driver.
std::chrono::nanoseconds Sampler::look(const std::vector<std::shared_ptr<Task>>& tasks) {
  const auto work = look_at_gpus(tasks);
  const auto began = Clock::now();
  for (const auto& task : tasks) look_at(*task, work);
  return Clock::now() - began;
}

Sampler::Work Sampler::look_at_gpus(const std::vector<std::shared_ptr<Task>>& tasks) {
  std::map<std::string, gpu::Device> held;
  std::set<std::string> shared;
  for (const auto& task : tasks)
    for (const auto& gpu : task->watched.gpus) {
      held.emplace(gpu.device.uuid, gpu.device);
      if (!gpu.whole) shared.insert(gpu.device.uuid);
    }
  Work work;
  if (held.empty()) return work;
  std::vector<gpu::Device> devices;
  for (auto& [uuid, device] : held) devices.push_back(std::move(device));
  work.gpus = gpus_.sample(devices);
  if (shared.empty()) return work;
  std::vector<Watched> watched;
  for (const auto& task : tasks)
    if (!std::ranges::all_of(task->watched.gpus, &HeldGpu::whole)) watched.push_back(task->watched);
  const auto owner_of = options_.owners(watched);
  for (const auto& uuid : shared)
    if (const auto gpu = work.gpus.find(uuid); gpu != work.gpus.end())
      for (const auto& process : gpu->second.processes)
        work.processes[process.pid] =
            owner_of(read_file(fmt::format("/proc/{}/cgroup", process.pid)).value_or(""));
  return work;
}

void Sampler::look_at(Task& task, const Work& work) {
  const std::lock_guard lock(task.mutex);
  const auto now = Clock::now();
  const auto seconds = seconds_of(now - task.looked_at);
  if (task.over || seconds < kSoonest) return;
  if (const auto begun = task.begin(options_); !begun) trouble_.report(begun);
  task.looked_at = now;
  const auto reading = task.read();
  const auto since = count_on(task.totals, reading.counters);
  // What was counted while nobody looked was not done in the last second.
  const auto known = std::exchange(task.was_seen, false) || seconds > kLongest ? 0 : seconds;
  Slot slot;
  slot.time = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(wall_clock().time_since_epoch()).count());
  auto& values = slot.mean;
  const auto add_gpus = [&](Column column, auto of_one, double divisor) {
    double sum = 0;
    for (const auto& gpu : task.watched.gpus) {
      const auto value = (work.*of_one)(task.watched.task, gpu);
      if (!value) return;
      sum += *value;
    }
    if (!task.watched.gpus.empty()) values[column] = sum / divisor;
  };
  add_gpus(kGpuPercent, &Work::percent, static_cast<double>(task.watched.gpus.size()));
  add_gpus(kGpuMemory, &Work::memory, 1);
  if (const auto micros = rate(since.cpu_micros, known)) values[kCpus] = *micros / 1e6;
  if (reading.memory) values[kMemory] = static_cast<double>(*reading.memory);
  values[kNetworkReceived] = rate(since.network_received, known);
  values[kNetworkSent] = rate(since.network_sent, known);
  values[kDiskRead] = rate(since.disk_read, known);
  values[kDiskWritten] = rate(since.disk_written, known);
  std::copy_n(values.begin(), kWithMost, slot.most.begin());
  task.latest = {reading, slot.time};
  if (const auto kept = task.keep(slot, std::min(seconds, kLongest)); !kept) trouble_.report(kept);
}

}  // namespace drover::use
