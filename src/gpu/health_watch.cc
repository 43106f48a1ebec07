#include "gpu/health_watch.h"

#include <algorithm>
#include <condition_variable>

#include "gpu/recognise.h"

namespace drover::gpu {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSlice(200);  // how long anything waits before it looks whether to stop
constexpr std::chrono::milliseconds kSoonest(
    100);                                         // from one poll to the next, however many errors there are
constexpr std::chrono::seconds kAfterFailure(1);  // the same, when a GPU cannot be waited for
constexpr std::chrono::seconds kFarewell(1);

/// The wall's time as of the start, and from there on steady: nobody sets it back.
class SteadyWall {
 public:
  TimePoint now() const {
    return wall_ + std::chrono::floor<std::chrono::milliseconds>(Steady::now() - steady_);
  }

 private:
  TimePoint wall_ = wall_clock();
  Steady::time_point steady_ = Steady::now();
};

}  // namespace

/// What the threads have in common; lives as long as the last of them.
struct HealthWatch::Shared {
  explicit Shared(const HealthWatchOptions& given) : options(given) {}

  const HealthWatchOptions options;
  std::mutex mutex;  ///< of all below, and of the watchers' own fields
  std::condition_variable changed;
  bool stopped = false;
  SharedNvml nvml;            ///< null until there is one, and while it is replaced
  std::uint64_t answers = 0;  ///< about the library, so far
  std::vector<Observation> seen;

  void see(Observation observation) {
    const std::lock_guard lock(mutex);
    seen.push_back(std::move(observation));
    changed.notify_all();
  }
  void publish(SharedNvml library) {
    // The old one may be unloaded here, which may block: not under the lock.
    const std::lock_guard lock(mutex);
    nvml.swap(library);
    ++answers;
    changed.notify_all();
  }
  std::uint64_t answer_count() {
    const std::lock_guard lock(mutex);
    return answers;
  }
  SharedNvml library() {
    const std::lock_guard lock(mutex);
    return nvml;
  }
  /// False when it is time to stop.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, time, [&] { return stopped; });
  }
};

/// One GPU's thread.
struct HealthWatch::Watcher {
  Watcher(std::shared_ptr<Shared> the_shared, const Device& device)
      : shared(std::move(the_shared)),
        uuid(device.uuid),
        probe(device),
        answers_before(shared->answer_count()) {}

  std::shared_ptr<Shared> shared;
  std::string uuid;
  Steady::time_point alive_at = Steady::now();  ///< when it last went into a call, or came out of one
  bool silent = false;                          ///< since then
  bool done = false;

  void run() {
    while (beat()) {
      poll();
      wait_for_next();
    }
    events.reset();
    nvml.reset();
    const std::lock_guard lock(shared->mutex);
    done = true;
    shared->changed.notify_all();
  }

 private:
  HealthProbe probe;
  const std::uint64_t answers_before;  ///< about the library, when this GPU was found
  SharedNvml nvml;
  std::unique_ptr<EventSource> events;
  nvmlDevice_t registered = nullptr;
  std::optional<bool> monitored;  ///< as told last

  /// False when it is time to stop.
  bool beat() {
    const std::lock_guard lock(shared->mutex);
    alive_at = Steady::now();
    silent = false;
    return !shared->stopped;
  }

  void poll() {
    if (auto library = shared->library(); library != nvml) {
      events.reset();
      probe.forget_handle();
      nvml = std::move(library);
    }
    if (!nvml) return;
    // Somebody found this GPU, so that there was no driver is old news: it counts when it was asked since
    // then.
    if (!*nvml && shared->answer_count() <= answers_before + 1) return;
    const auto polled = probe.poll(*nvml);
    shared->see(polled);
    if (polled.answer == Answer::kAnswers) watch_errors();
  }

  void watch_errors() {
    if (events && registered == probe.handle()) return;
    events = EventSource::open(nvml, probe.handle());
    // One that has just gone away is lost, and not one whose driver reports no errors.
    if (!events && monitored != false && probe.poll(*nvml).answer != Answer::kAnswers) return;
    registered = probe.handle();
    const bool is_monitored = events != nullptr;
    if (monitored != is_monitored) shared->see(MonitoringSeen{uuid, is_monitored});
    monitored = is_monitored;
  }

  void wait_for_next() {
    const auto start = Steady::now();
    auto next = start + shared->options.poll_every;
    while (beat() && shared->library() == nvml && Steady::now() < next) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Steady::now());
      const auto slice = std::clamp(left, std::chrono::milliseconds(1), kSlice);
      if (!events) {
        shared->pause(slice);
        continue;
      }
      auto waited = events->wait(slice);
      if (waited.xid) {
        if (waited.xid->uuid.empty()) waited.xid->uuid = uuid;
        shared->see(*waited.xid);
      }
      if (waited.happened) next = std::min(next, start + kSoonest);
      if (waited.failed) next = std::min(next, start + kAfterFailure);
      if (waited.failed) events.reset();
    }
  }
};

HealthWatch::HealthWatch(Library library, const std::vector<Device>& devices,
                         const HealthWatchOptions& options, Listener listener)
    : library_(std::move(library)),
      listener_(std::move(listener)),
      shared_(std::make_shared<Shared>(options)),
      health_(options.policy, options.timing) {
  watch(devices);
  keeper_ = std::thread([this] { keep_library(); });
  judge_ = std::thread([this] { judge(); });
}

HealthWatch::~HealthWatch() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    shared_->changed.notify_all();
  }
  judge_.join();
  keeper_.join();
  std::unique_lock lock(shared_->mutex);
  const auto all_done = [&] {
    return std::ranges::all_of(watchers_, [](const auto& each) { return each.second.first->done; });
  };
  shared_->changed.wait_for(lock, kFarewell, all_done);
  for (auto& [uuid, each] : watchers_)
    if (each.first->done)
      each.second.join();
    else
      each.second.detach();
}

void HealthWatch::watch(const std::vector<Device>& devices) {
  const std::lock_guard lock(mutex_);
  for (const auto& device : devices) {
    if (!tells_uuid(device) || watchers_.contains(device.uuid)) continue;
    health_.know(device.uuid);
    auto watcher = std::make_shared<Watcher>(shared_, device);
    watchers_.emplace(device.uuid, std::pair(watcher, std::thread([watcher] { watcher->run(); })));
  }
}

Health HealthWatch::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

/// A library is unloaded with its last user, and only then can the one of another driver be loaded in its
/// place. So everybody lets go of the old one before the new one is asked for.
void HealthWatch::keep_library() {
  bool first = true;
  std::weak_ptr<const Result<Nvml>> current;
  do {
    auto fresh = library_();
    const auto known = current.lock();
    const bool replaced = known && *known && fresh != known;
    if (!replaced) {
      const bool is_new = fresh && *fresh && fresh != known;
      current = fresh;
      shared_->publish(std::move(fresh));
      if (is_new && !first) shared_->see(DriverReloaded{});
      first = false;
      continue;
    }
    current.reset();
    shared_->publish(nullptr);
  } while (shared_->pause(shared_->options.poll_every));
  shared_->publish(nullptr);
}

void HealthWatch::judge() {
  const SteadyWall wall;
  for (;;) {
    std::vector<Observation> seen;
    {
      std::unique_lock lock(shared_->mutex);
      shared_->changed.wait_for(lock, kSlice, [&] { return shared_->stopped || !shared_->seen.empty(); });
      if (shared_->stopped) return;
      seen.swap(shared_->seen);
    }
    std::vector<HealthChange> changes;
    {
      const std::lock_guard lock(mutex_);
      const auto long_ago = Steady::now() - shared_->options.patience;
      for (const auto& [uuid, each] : watchers_) {
        const std::lock_guard theirs(shared_->mutex);
        if (each.first->silent || each.first->alive_at > long_ago) continue;
        each.first->silent = true;
        seen.emplace_back(GpuPolled{.uuid = uuid, .answer = Answer::kSilent});
      }
      for (const auto& observation : seen)
        std::ranges::move(health_.apply(observation, wall.now()), std::back_inserter(changes));
    }
    for (const auto& change : changes) listener_(change);
  }
}

}  // namespace drover::gpu
