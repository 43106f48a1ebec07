#include "kube/scheduling/loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/pause.h"
#include "kube/client/binding.h"
#include "kube/gpu_topology.h"
#include "kube/scheduler/preemption_words.h"
#include "kube/scheduler/unschedulable.h"
#include "kube/scheduling/claim_writer.h"
#include "kube/scheduling/node_writer.h"
#include "kube/scheduling/queue_gate.h"
#include "kube/scheduling/volume_writer.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using scheduler::PodName;

constexpr FairPool::Key kEverybody = 0;
constexpr std::size_t kMostWritesWaiting = 1'000'000;
constexpr std::chrono::milliseconds kFirstLook{100};
constexpr std::chrono::milliseconds kLongestLook{5000};
constexpr std::size_t kMostFailures = 10'000;  // that are remembered of pods that may be gone
constexpr std::chrono::milliseconds kBetweenTellings{1000};
constexpr std::chrono::milliseconds kUntilItBegins{100};
constexpr std::chrono::milliseconds kBetweenLooks{5000};   ///< of one that may have to begin
constexpr std::chrono::milliseconds kUntilItIsTold{5000};  ///< by the API server, at the latest
constexpr const char* kEnded = "ended by the scheduler to make room for others";
constexpr const char* kOwnGroups = "scheduling.k8s.io";  ///< of which PodGroups the scheduler tells

EventTarget target_of(const PodName& pod) {
  return {.kind = "Pod", .name_space = pod.name_space, .name = pod.name, .uid = pod.uid};
}

EventTarget target_of(const scheduler::GangBook::Reference& object) {
  return {api_version(object.path.resource), object.kind, object.path.name_space, object.path.name,
          object.uid};
}

/// Whether it may have been done all the same.
bool may_pass(const Error& error) {
  return error.kind == ErrorKind::kTimeout || error.kind == ErrorKind::kUnavailable;
}

std::string shown(const PodName& pod) {
  return fmt::format("{}/{}", pod.name_space, pod.name);
}

/// The reason of the condition of a pod that is ended, why in words, and the reason of its Event.
struct EvictionWords {
  std::string reason, message, event;
};

EvictionWords words_of(const scheduler::Eviction& eviction) {
  if (!eviction.device_taint.empty())
    return {
        "DeletionByDeviceTaintManager",
        fmt::format("ended by the scheduler: one of its devices has the taint '{}', which ends who has it",
                    eviction.device_taint),
        "Evicted"};
  if (eviction.half_gang)
    return {"IncompleteGang", "ended by the scheduler: there is no place for the rest of its gang",
            "IncompleteGang"};
  // Who may not see the other pod is not told its name.
  const bool may_know = eviction.winner.name_space == eviction.pod.name_space;
  return {scheduler::kPreempted,
          to_string(scheduler::Preemption{eviction.lent, may_know ? eviction.winner.name : ""}), "Preempted"};
}

}  // namespace

SchedulingLoop::SchedulingLoop(Api& api, SchedulingCounts& counts, SchedulingOptions options)
    : api_(api),
      counts_(counts),
      options_(std::move(options)),
      conditions_(api),
      scheduler_(options_.scheduler),
      writers_({options_.writes, options_.writes, kMostWritesWaiting}),
      events_(api, {.component = options_.scheduler.name, .host = {}},
              [this](const Error& error) {
                if (options_.warn) options_.warn("Events are not written: " + to_string(error));
              },
              {}, {[this] { return writers_.totals().waiting > 0; }}),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

SchedulingLoop::~SchedulingLoop() {
  thread_.request_stop();
  ending_.request_stop();
  thread_.join();
  writers_.stop();
}

void SchedulingLoop::change(Change change) {
  const std::lock_guard lock(mutex_);
  changes_.push_back(std::move(change));
  changed_.notify_one();
}

void SchedulingLoop::begin() {
  const std::lock_guard lock(mutex_);
  begun_ = true;
  changed_.notify_one();
}

void SchedulingLoop::run(const std::stop_token& stop) {
  auto wait = 0ms;
  std::chrono::steady_clock::time_point due{}, looked{};
  bool begun = false;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, wait, [&] { return !changes_.empty() || begun != begun_; });
    if (stop.stop_requested()) return;
    counts_.turned = std::chrono::steady_clock::now();
    const auto changes = std::exchange(changes_, {});
    begun = begun_;
    lock.unlock();
    for (const auto& change : changes) change(scheduler_);
    const auto now = std::chrono::steady_clock::now();
    if (begun && (scheduler_.has_changed() || now >= due)) due = std::chrono::steady_clock::now() + decide();
    if (!begun && changes.empty() && now - looked >= kBetweenLooks) {
      scheduler_.look_ahead();
      looked = std::chrono::steady_clock::now();
    }
    wait = begun ? std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(due - now)) : kUntilItBegins;
    lock.lock();
  }
}

/// How long the next decision may wait when nothing changes.
std::chrono::milliseconds SchedulingLoop::decide() {
  const auto begin = std::chrono::steady_clock::now();
  const auto now = wall_clock();
  const auto round = scheduler_.decide(now, [this](const auto& start) { write(start); });
  const auto took = std::chrono::steady_clock::now() - begin;
  counts_.deciding_microseconds +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  ++counts_.rounds;
  counts_.waiting = round.waiting.size();
  for (const auto& what : round.volumes)
    if (!writers_.post(kEverybody, [this, what] { write_volumes(what); }))
      fail(what.pod, {ErrorKind::kExhausted, "too much waits to be written"}, "gets no volumes");
  for (const auto& undo : round.volume_undos)
    static_cast<void>(writers_.post(kEverybody, [this, undo] { undo_volumes(undo); }));
  for (const auto& lapse : round.lapses)
    events_.record(
        target_of(lapse.pod),
        {true, "RoomGivenBack",
         fmt::format("Nobody has bound the pod within {} since its gate was opened: the room that was "
                     "kept for it on {} is for others now",
                     format_duration(options_.scheduler.release_grace), lapse.node)});
  for (const auto& left : round.left_claims)
    if (!writers_.post(kEverybody, [this, left] { undo(left); }))
      scheduler_.undone(left, now + options_.first_retry);
  for (const auto& eviction : round.evictions)
    if (!writers_.post(kEverybody, [this, eviction] { evict(eviction); }))
      fail(eviction.pod, {ErrorKind::kExhausted, "too much waits to be written"}, "is not ended for others");
  for (const auto held : {true, false})
    for (const auto& node : held ? round.node_holds.hold : round.node_holds.release)
      static_cast<void>(writers_.post(kEverybody, [this, node, held] { hold(node, held); }));
  if (begin - told_at_ >= kBetweenTellings) {
    told_at_ = begin;
    tell(round);
  }
  if (round.again) return std::chrono::milliseconds::zero();
  auto wait = round.waiting.empty() ? options_.look_again : std::min(options_.look_again, kBetweenTellings);
  if (round.retry_at) wait = std::min(wait, std::max(*round.retry_at - now, std::chrono::milliseconds(1)));
  return wait;
}

/// All claims of a gang are written before the first of its pods is bound: that cannot be taken back.
struct SchedulingLoop::Batch {
  explicit Batch(const scheduler::Start& decided) : start(decided), claims_left(decided.bindings.size()) {}

  scheduler::Start start;  ///< each binding is of whoever prepares it
  std::atomic<std::size_t> claims_left;
  std::atomic<bool> failed = false;
};

void SchedulingLoop::write(const scheduler::Start& start) {
  const auto batch = std::make_shared<Batch>(start);
  for (auto& binding : batch->start.bindings)
    if (!writers_.post(kEverybody, [this, batch, &binding] { prepare(*batch, binding); }))
      prepare_failed(*batch, binding, {ErrorKind::kExhausted, "too much waits to be written"});
}

void SchedulingLoop::prepare(Batch& batch, scheduler::Binding& binding) {
  if (!may_write()) return;
  for (auto& claim : binding.claims)
    if (const auto done = write_claim(api_, binding.pod, claim); !done)
      return prepare_failed(batch, binding, done.error());
  if (--batch.claims_left > 0) return;
  bind_all(batch);
}

void SchedulingLoop::prepare_failed(Batch& batch, const scheduler::Binding& binding, const Error& error) {
  batch.failed = true;
  if (error.kind != ErrorKind::kNotFound && error.kind != ErrorKind::kConflict && options_.warn)
    options_.warn(
        fmt::format("The pod {} is not bound to {}: {}", shown(binding.pod), binding.node, to_string(error)));
  if (--batch.claims_left > 0) return;
  bind_all(batch);
}

/// By whoever has written the last of the claims.
void SchedulingLoop::bind_all(Batch& batch) {
  if (batch.failed) {
    for (const auto& binding : batch.start.bindings) put_back(binding, {ErrorKind::kConflict, ""});
    return;
  }
  const auto shared = std::make_shared<const scheduler::Start>(batch.start);
  const auto& bindings = shared->bindings;
  for (std::size_t i = 1; i < bindings.size(); ++i)
    if (!writers_.post(kEverybody, [this, shared, i] { bind(shared->bindings[i]); })) bind(bindings[i]);
  bind(bindings.front());
}

void SchedulingLoop::bind(const scheduler::Binding& binding) {
  if (!may_write()) return;
  if (binding.opens_gate) return release(binding);
  const auto& pod = binding.pod;
  Binding wanted{.name_space = pod.name_space, .pod = pod.name, .uid = pod.uid, .node = binding.node};
  if (!binding.gpus.empty())
    wanted.annotations.emplace(kChosenGpusAnnotation, fmt::format("{}", fmt::join(binding.gpus, ",")));
  if (!binding.claimed.empty())
    wanted.annotations.emplace(kClaimedGpusAnnotation, fmt::format("{}", fmt::join(binding.claimed, ",")));
  if (const auto done = kube::bind(api_, wanted); !done) return put_back(binding, done.error());
  ++counts_.bound;
  note_done(pod);
  events_.record(target_of(pod), {false, "Scheduled",
                                  fmt::format("Successfully assigned {} to {}", shown(pod), binding.node)});
}

void SchedulingLoop::write_volumes(const scheduler::VolumeWrite& what) {
  if (!may_write()) return;
  if (const auto done = give_volumes(api_, what); !done)
    fail(what.pod, done.error(), fmt::format("gets no volumes on {}", what.node));
}

void SchedulingLoop::undo_volumes(const scheduler::VolumeUndo& undo) {
  if (!may_write()) return;
  take_volumes_back(api_, undo.what);
  events_.record(target_of(undo.what.pod),
                 {true, "FailedScheduling", fmt::format("Is not bound to {}: {}", undo.what.node, undo.why)});
}

/// Another scheduler binds it.
void SchedulingLoop::release(const scheduler::Binding& binding) {
  const auto& pod = binding.pod;
  const auto done = open_queue_gate(
      api_, pod, binding.node, wall_clock(), [this] { return may_write(); }, ending_.get_token());
  if (!done) return fail(pod, done.error(), "waits on: its scheduling gate is not opened");
  note_done(pod);
  events_.record(
      target_of(pod),
      {false, "Released",
       fmt::format("Its turn has come: the scheduling gate {} is open, and until the pod is bound room "
                   "for it is kept on {}, for {} at most",
                   scheduler::kQueueGate, binding.node, format_duration(options_.scheduler.release_grace))});
}

void SchedulingLoop::note_done(const PodName& pod) {
  {
    const std::lock_guard lock(mutex_);
    failures_.erase(pod.uid);
  }
  conditions_.forget(pod.uid);
}

/// Nobody gets the GPUs of a binding that may have been done: it is looked up until it is known, or until the
/// end (nullopt).
std::optional<bool> SchedulingLoop::is_bound(const PodName& pod) {
  Backoff backoff(kFirstLook, kLongestLook);
  do {
    const auto found = api_.get({kPods, pod.name_space, pod.name});
    if (found)
      return text_at(*found, "/metadata/uid") == pod.uid && !text_at(*found, "/spec/nodeName").empty();
    if (found.error().kind == ErrorKind::kNotFound) return false;
  } while (pause(backoff.next(), ending_.get_token()));
  return std::nullopt;
}

void SchedulingLoop::put_back(const scheduler::Binding& binding, const Error& error) {
  if (may_pass(error) && is_bound(binding.pod).value_or(true)) return;  // then the cluster tells of it
  bool stand = false;
  Backoff backoff(kFirstLook, kLongestLook);
  for (const auto& claim : binding.claims) {
    auto cleared = clear_claim(api_, binding.pod, claim);
    while (!cleared && may_pass(cleared.error()) && pause(backoff.next(), ending_.get_token()))
      cleared = clear_claim(api_, binding.pod, claim);
    stand = stand || !cleared;
  }
  fail(binding.pod, error, fmt::format("is not bound to {}", binding.node), stand);
}

void SchedulingLoop::undo(const scheduler::LeftClaim& left) {
  if (!may_write()) return;
  const auto done = undo_left_claim(api_, left);
  if (!done && done.error().kind != ErrorKind::kConflict && options_.warn)
    options_.warn(fmt::format("The claim '{}' of an earlier try for the pod {} is not {}: {}", left.claim,
                              shown(left.pod), left.made ? "deleted" : "given back",
                              to_string(done.error())));
  const auto until = wall_clock() + (done ? kUntilItIsTold : options_.first_retry);
  change([left, until](scheduler::Scheduler& scheduler) { scheduler.undone(left, until); });
}

void SchedulingLoop::evict(const scheduler::Eviction& eviction) {
  if (!may_write()) return;
  const auto& pod = eviction.pod;
  const ObjectPath path{kPods, pod.name_space, pod.name};
  const auto [reason, message, event] = words_of(eviction);
  const nlohmann::json condition =
      condition_patch({"DisruptionTarget", "True", reason, message, wall_clock()});
  auto status = path;
  status.subresource = "status";
  auto done = api_.write(status, PatchType::kStrategic, condition);
  if (done || done.error().kind == ErrorKind::kNotFound) done = api_.remove(path, pod.uid);
  if (!done && done.error().kind != ErrorKind::kNotFound) return fail(pod, done.error(), "is not ended");
  ++counts_.evicted;
  events_.record(target_of(pod), {false, event, "The pod is " + message});
}

/// What is not written now is asked for again.
void SchedulingLoop::hold(const std::string& node, bool held) {
  if (!may_write()) return;
  const auto done = hold_node(api_, node, options_.scheduler.name, held);
  if (done || done.error().kind == ErrorKind::kNotFound) return;
  if (options_.warn)
    options_.warn(fmt::format("Pods of other schedulers are not kept off the node {}: {}", node,
                              to_string(done.error())));
  if (done.error().kind == ErrorKind::kPermissionDenied)
    change([](scheduler::Scheduler& scheduler) { scheduler.hold_no_nodes(); });
}

void SchedulingLoop::fail(const PodName& pod, const Error& error, const std::string& what,
                          bool claims_stand) {
  ++counts_.refused;
  auto pause = options_.first_retry;
  {
    const std::lock_guard lock(mutex_);
    if (failures_.size() > kMostFailures) failures_.clear();
    for (int i = failures_[pod.uid]++; i > 0 && pause < options_.longest_retry; --i) pause *= 2;
  }
  const auto until = wall_clock() + std::min(pause, options_.longest_retry);
  change([uid = pod.uid, until, claims_stand](scheduler::Scheduler& scheduler) {
    scheduler.failed(uid, until, claims_stand);
  });
  // What is gone, or was done by another, is no trouble: the cluster tells of it.
  if (error.kind != ErrorKind::kNotFound && error.kind != ErrorKind::kConflict && options_.warn)
    options_.warn(fmt::format("The pod {} {}: {}", shown(pod), what, to_string(error)));
}

void SchedulingLoop::tell(const scheduler::Round& round) {
  const auto waiters = scheduler_.waiters(round);
  std::vector<ConditionWriter::Told> all;
  all.reserve(waiters.size());
  std::set<std::string> known;  // jobs
  for (const auto& waiter : waiters)
    if (!conditions_.is_news(waiter.pod.uid)) known.insert(waiter.job);
  for (const auto& waiter : waiters) {
    const auto& pod = waiter.pod;
    auto message = scheduler::unschedulable_message(waiter.why, options_.scheduler.gpu_resource);
    const EventText text{true, "FailedScheduling", message};
    const bool is_news = waiter.speaks && !known.contains(waiter.job);
    if (is_news) events_.record(target_of(pod), text);
    if (waiter.group && is_news) events_.record(target_of(*waiter.group), text);
    if (waiter.group && waiter.group->path.resource.group == kOwnGroups)
      all.push_back({waiter.group->path, waiter.group->uid, message});
    all.push_back({.object = {kPods, pod.name_space, pod.name},
                   .uid = pod.uid,
                   .message = std::move(message),
                   .reason = waiter.gated ? "SchedulingGated" : "Unschedulable"});
  }
  for (auto& group : scheduler_.started_groups())
    all.push_back({std::move(group.object.path), std::move(group.object.uid),
                   group.outcome == scheduler::GangOutcome::kScheduled ? "Its pods have their nodes" : kEnded,
                   group.outcome});
  conditions_.update(std::move(all));
  if (!scheduler_.is_shared()) return;
  auto use = std::make_shared<const scheduler::Scheduler::Use>(scheduler_.use(round));
  const std::lock_guard lock(mutex_);
  use_ = std::move(use);
}

std::shared_ptr<const scheduler::Scheduler::Use> SchedulingLoop::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

}  // namespace drover::kube
