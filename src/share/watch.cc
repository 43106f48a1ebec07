#include "share/watch.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/files.h"
#include "metrics/processes.h"

namespace drover::share {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;  // of a file of a process

/// Has the pages say what they are to say, and says whether that was anything else; what fails is tried again
/// at the next look.
bool agree(Pages& pages, const std::vector<Limit>& limits) {
  return !limits.empty() && pages.limits() != limits && pages.set_limits(limits);
}

}  // namespace

ProcessPlace place_of(const std::string& proc, std::uint32_t pid) {
  const auto folder = fmt::format("{}/{}", proc, pid);
  const auto stat = metrics::process_stat(folder + "/stat");
  if (!stat) return {};
  if (!metrics::has_ended(*stat))
    return {stat->started, read_file(folder + "/cgroup", kMostBytes).value_or("")};
  // Groups of the first version forget a thread that has ended.
  std::error_code error;
  for (auto thread = std::filesystem::directory_iterator(folder + "/task", error);
       !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    const auto place = thread->path().string();
    const auto other = metrics::process_stat(place + "/stat");
    if (other && !metrics::has_ended(*other))
      return {stat->started, read_file(place + "/cgroup", kMostBytes).value_or("")};
  }
  return {};
}

Watch::Watch(gpu::UsageSampler::Library library, Punishment punishment,
             std::function<void(std::vector<Verdict>)> tell, std::string proc)
    : proc_(std::move(proc)),
      tell_(std::move(tell)),
      sampler_(std::move(library),
               {.patience = kInterval, .fresh = std::chrono::milliseconds(0), .look = gpu::Look::kMemory}),
      referee_(punishment),
      thread_([this] { run(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::set(Shares shares) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(shares);
  }
  changed_.notify_all();
}

Figures Watch::figures() const {
  const std::lock_guard lock(mutex_);
  return {referee_.accounts(), counted_, turns_.figures(), referee_.unattributed()};
}

Looks Watch::look(const std::vector<gpu::Device>& gpus, const gpu::TaskOf& task_of) {
  Looks looks;
  for (const auto& [uuid, usage] : sampler_.sample(gpus)) {
    if (!usage.answers) continue;
    auto& look = looks[uuid];
    // An older library counts what the driver keeps for itself as used, and does not say how much it is.
    if (usage.memory.reserved) look.used = usage.memory.used;
    for (const auto& process : usage.processes) {
      const auto place = place_of(proc_, process.pid);
      look.processes.push_back(
          {process.pid, process.memory_bytes.value_or(0), place.born, task_of(place.cgroups)});
    }
  }
  return looks;
}

/// Opens those that are not, and says whether others are open now. Those that cannot be opened are not made
/// yet, or of tasks that have ended meanwhile.
bool Watch::keep_pages(const std::map<std::string, GuardedTask>& tasks) {
  bool others = std::erase_if(pages_, [&](const auto& one) {
                  return !tasks.contains(one.first) || !one.second.are_there();
                }) > 0;
  for (const auto& [task, wanted] : tasks) {
    if (!pages_.contains(task)) {
      const auto place = Directory::open(wanted.folder);
      auto pages = place ? Pages::open(*place) : Result<Pages>(Failure(place.error()));
      if (!pages) continue;
      pages_.emplace(task, *std::move(pages));
      others = true;
    }
    others = agree(pages_.at(task), wanted.limits) || others;
  }
  return others;
}

void Watch::give_turns(TimeShares time) {
  std::vector<Contender> contenders;
  for (const auto& [task, pages] : pages_)
    for (std::size_t i = 0; i < pages.limits().size(); ++i)
      if (const auto& limit = pages.limits()[i]; limit.milli > 0 && time != TimeShares::kFree)
        contenders.push_back({limit.gpu, task, pages.limits_page(), pages.account(), i, limit.milli,
                              time == TimeShares::kStrict});
  (void)turns_.set(contenders);  // of pages of our own making nothing can be wrong
}

std::map<std::string, std::map<std::string, Counted>> Watch::look_at_pages() {
  std::map<std::string, std::map<std::string, Counted>> counted;
  for (auto& [task, pages] : pages_) {
    const auto processes = pages.look();
    if (!processes) continue;
    const auto refused = pages.refused();
    for (std::size_t i = 0; i < pages.limits().size(); ++i) {
      auto& of_gpu = counted[task][pages.limits()[i].gpu];
      of_gpu.refused = refused[i];
      for (const auto& process : *processes) of_gpu.charged += process.charged[i];
    }
  }
  return counted;
}

void Watch::run() {
  std::vector<gpu::Device> gpus;
  gpu::TaskOf task_of;
  std::map<std::string, GuardedTask> guarded;
  auto time = TimeShares::kFree;
  for (std::unique_lock lock(mutex_);;) {
    const auto is_told = [&] { return stopped_ || next_.has_value(); };
    if (gpus.empty()) changed_.wait(lock, is_told);
    if (stopped_) return;
    bool is_news = false;
    if (auto shares = std::exchange(next_, std::nullopt)) {
      gpus = std::move(shares->gpus);
      referee_.set(std::move(shares->allowances));
      if (gpus.empty()) {
        pages_.clear();
        give_turns(TimeShares::kFree);
        continue;
      }
      lock.unlock();
      task_of = shares->owners();
      guarded = std::move(shares->guarded);
      is_news = std::exchange(time, shares->time) != time;
      lock.lock();
    }
    lock.unlock();
    const auto began = std::chrono::steady_clock::now();
    if (keep_pages(guarded) || is_news) give_turns(time);
    auto counted = look_at_pages();
    const auto looks = look(gpus, task_of);
    const auto now = std::chrono::steady_clock::now();
    lock.lock();
    counted_ = std::move(counted);
    auto verdicts = referee_.judge(looks, now);
    lock.unlock();
    if (!verdicts.empty()) tell_(std::move(verdicts));
    lock.lock();
    changed_.wait_until(lock, began + kInterval, [&] { return stopped_; });
  }
}

}  // namespace drover::share
