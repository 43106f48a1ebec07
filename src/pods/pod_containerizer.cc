#include "pods/pod_containerizer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/pause.h"
#include "container/quarantine.h"
#include "container/task_folder.h"
#include "placement/preemption_words.h"
#include "pods/gpu_claim.h"
#include "pods/log_copy.h"
#include "pods/pod_exec.h"
#include "pods/pod_sandbox.h"

namespace drover::pods {
namespace {

namespace asio = boost::asio;
using container::Found;
using nlohmann::json;

constexpr std::size_t kThreads = 16;
constexpr std::chrono::seconds kLeftoverPause{1};
constexpr int kLeftoverLooks = 30;
// Whoever has not said by then what holds a pod to its shares, as drivers of others, is not waited for.
constexpr std::chrono::milliseconds kTierWait{1000}, kTierPause{200}, kTierFresh{10'000};

bool may_pass(const Error& error) {
  return error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kTimeout;
}

/// Whether nothing of the attempt has run or will by this pod.
bool is_leftover(const PodView& view) {
  return view.actual == Actual::kRefused || view.actual == Actual::kUnplacedLeaving;
}

}  // namespace

struct PodContainerizer::Attempt {
  std::string task;
  int number = 0;
  kube::ObjectPath path;
  int priority = 0;
  std::mutex mutex;  ///< of what is done: held while the API server is asked
  Expected expected = Expected::kWaiting;
  bool made = false;                     ///< it is there, or was
  std::uint64_t looked_for_claim = 0;    ///< of which version of it the claim was missed
  bool over = false, forced = false;     ///< all is told
  bool placed = false, started = false;  ///< and told
  std::optional<std::chrono::steady_clock::time_point> tier_until;  ///< its start is not told without one
  json pod;                                                         ///< as it is to be made
  std::map<std::string, std::string> secrets;                       ///< with it
  std::string waits;                                                ///< what was told last
  std::atomic<bool> tries_again = false;

  // Under the containerizer's mutex:
  std::string uid;
  View view;  ///< null: nothing is there

  /// What was told may be older than what was answered, and the other way round.
  void take(View seen) {
    if (seen && view && seen->uid == view->uid && seen->version < view->version) return;
    if (seen) uid = seen->uid;
    view = std::move(seen);
  }

  PodStreams::StreamPointer stream;
};

Result<std::unique_ptr<PodContainerizer>> PodContainerizer::create(kube::Api& api,
                                                                   PodContainerizerOptions options) {
  DROVER_TRY(auto state, Directory::create(options.state, 0711));
  DROVER_TRY(auto tasks, state.make_subdirectory("tasks", 0700));
  std::unique_ptr<PodContainerizer> made(new PodContainerizer(api, std::move(options), std::move(tasks)));
  const auto& settings = made->options_;
  made->informer_ = std::make_unique<kube::Informer<PodView>>(
      api, kube::InformerOptions<PodView>{
               .selection = {.resource = kube::kPods,
                             .label_selector = fmt::format("{}={}", kJournalLabel, settings.pods.journal)},
               .read = [](const json& pod) -> Result<PodView> { return read_pod(pod); },
               .on_change = [containerizer = made.get()](const auto& change) { containerizer->seen(change); },
               .on_trouble =
                   [log = settings.watcher.log](const Error& error) {
                     if (log) log(to_string(error));
                   }});
  DROVER_CHECK_OK(made->informer_->wait_until_listed(settings.listing));
  return made;
}

PodContainerizer::PodContainerizer(kube::Api& api, PodContainerizerOptions options, Directory tasks)
    : options_(std::move(options)),
      tasks_(std::move(tasks)),
      store_(api),
      streams_(api, options_.server, tasks_, options_.streams, options_.watcher.log),
      threads_(kThreads) {
  if (options_.agents != nullptr)
    overdue_ = std::make_unique<OverduePods>(*options_.agents, options_.watcher.log);
}

PodContainerizer::~PodContainerizer() {
  informer_.reset();
  stop_.request_stop();
  streams_.stop();
  threads_.stop();
  threads_.join();
}

// What is seen

void PodContainerizer::seen(const kube::Change<PodView>& change) {
  const auto& view = change.now ? change.now : change.before;
  const auto key = view->name_space + "/" + view->name;
  AttemptPointer attempt;
  bool is_of_nobody = false;
  {
    const std::lock_guard lock(mutex_);
    auto& known = pods_[view->task];
    if (change.now)
      known[key] = change.now;
    else
      known.erase(key);
    if (known.empty()) pods_.erase(view->task);
    const auto found = attempts_.find(view->task);
    if (found == attempts_.end() || found->second->number > view->attempt)
      is_of_nobody = change.now && (found != attempts_.end() || cleaned_.contains(view->task));
    else if (found->second->number == view->attempt)
      attempt = found->second;
    if (attempt && !attempt->uid.empty() && attempt->uid != view->uid) attempt = nullptr;
    if (attempt) attempt->take(change.now);
  }
  if (attempt) soon(attempt);
  // It was made late.
  if (is_of_nobody && (view->held || !view->leaving)) asio::post(threads_, [this, view] { let_go(view); });
}

void PodContainerizer::let_go(const View& view) {
  if (store_.release(*view)) return;
  const auto timer = std::make_shared<asio::steady_timer>(threads_, options_.again);
  timer->async_wait([this, view, timer](const auto& error) { return error ? void() : let_go(view); });
}

void PodContainerizer::see(const AttemptPointer& attempt, const std::optional<json>& pod) {
  auto view = pod ? std::make_shared<const PodView>(read_pod(*pod)) : nullptr;
  const std::lock_guard lock(mutex_);
  attempt->take(std::move(view));
}

PodContainerizer::View PodContainerizer::view_of(const AttemptPointer& attempt) const {
  const std::lock_guard lock(mutex_);
  return attempt->view;
}

PodContainerizer::AttemptPointer PodContainerizer::find(const std::string& task_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(task_id);
  return found == attempts_.end() ? nullptr : found->second;
}

// What is done

void PodContainerizer::soon(const AttemptPointer& attempt) {
  asio::post(threads_, [this, attempt] {
    const std::lock_guard lock(attempt->mutex);
    look_at(attempt);
  });
}

void PodContainerizer::later(const AttemptPointer& attempt, std::chrono::milliseconds pause) {
  if (attempt->tries_again.exchange(true)) return;
  const auto timer = std::make_shared<asio::steady_timer>(threads_, pause);
  timer->async_wait([this, attempt, timer](const auto& error) {
    if (error) return;
    attempt->tries_again = false;
    const std::lock_guard lock(attempt->mutex);
    look_at(attempt);
  });
}

void PodContainerizer::look_at(const AttemptPointer& attempt) {
  while (!attempt->over) {
    if (!attempt->made) {
      if (const auto made = make(attempt); !made) {
        if (may_pass(made.error())) {
          if (options_.watcher.waits) options_.watcher.waits(attempt->task, made.error().message);
          return later(attempt, options_.again);
        }
        attempt->over = true;
        if (options_.watcher.failed) options_.watcher.failed(attempt->task, attempt->number, made.error());
        return;
      }
    }
    const auto view = view_of(attempt);
    const auto reaction = react(attempt->expected, view ? view->actual : Actual::kAbsent);
    const bool waits = view && (view->actual == Actual::kUnplaced || view->actual == Actual::kPlaced);
    if (waits && !view->why.empty() && view->why != attempt->waits) {
      attempt->waits = view->why;
      if (options_.watcher.waits) options_.watcher.waits(attempt->task, view->why);
    }
    if (view && lacks_claim(*view) && attempt->looked_for_claim != view->version) {
      attempt->looked_for_claim = view->version;
      attempt->made = false;
      continue;
    }
    const bool told = tell(attempt, reaction.news, view);
    if (attempt->over) return;
    if (const auto done = perform(attempt, reaction.deed, view); !done) return later(attempt, options_.again);
    if (!told && view_of(attempt) == view) return hurry(attempt, view);
  }
}

void PodContainerizer::hurry(const AttemptPointer& attempt, const View& view) {
  if (!overdue_ || !view || !view->due_at) return;
  if (wall_clock() > *view->due_at + options_.overdue) overdue_->end(*view);
  later(attempt, options_.again);
}

Status PodContainerizer::make(const AttemptPointer& attempt) {
  // What was asked to end before it was made: it may be there all the same.
  if (attempt->expected == Expected::kCancelled || attempt->pod.is_null()) {
    DROVER_TRY(const auto there, store_.look(attempt->path));
    if (there && attempt->expected == Expected::kWaiting) DROVER_CHECK_OK(store_.ensure_claim(*there));
    see(attempt, there);
    attempt->made = true;
    return {};
  }
  for (int look = 0;; ++look) {
    DROVER_TRY(const auto made, store_.make(attempt->pod, attempt->priority, attempt->secrets));
    const auto view = read_pod(made);
    if (!is_leftover(view) || look == kLeftoverLooks) {
      see(attempt, made);
      break;
    }
    // Of the same attempt, which nothing came of: it makes way.
    DROVER_CHECK_OK(store_.release(view));
    if (look > 0 && !pause(kLeftoverPause, stop_.get_token()))
      return fail(ErrorKind::kUnavailable, "it was stopped");
  }
  attempt->made = true;
  attempt->pod = nullptr;
  attempt->secrets.clear();
  return {};
}

void PodContainerizer::tell_start(const AttemptPointer& attempt, const View& view) {
  if (!attempt->placed && !view->node.empty() && options_.watcher.placed) {
    attempt->placed = true;
    note_sandbox(attempt, view);
    options_.watcher.placed(attempt->task, attempt->number, {view->node, view->gpus});
  }
  if (attempt->started || !view->started_at) return;
  const auto tier = store_.tier_of(*view);
  const auto now = std::chrono::steady_clock::now();
  if (!attempt->tier_until)
    attempt->tier_until = wall_clock() - *view->started_at < kTierFresh ? now + kTierWait : now;
  const bool may_follow = attempt->expected == Expected::kRunning && !attempt->over;
  if (!tier && may_follow && now < *attempt->tier_until) return later(attempt, kTierPause);
  attempt->started = true;
  options_.watcher.started(attempt->task,
                           {0, *view->started_at, "kubernetes", view->address, tier.value_or("")});
}

/// Before anybody hears of its place: by then it is found again.
void PodContainerizer::note_sandbox(const AttemptPointer& attempt, const View& view) const {
  if (options_.agents == nullptr) return;
  const auto folder = tasks_.subdirectory(attempt->task);
  const auto noted = folder ? note_place(*folder, {view->node, view->uid}) : Failure(folder.error());
  if (!noted && options_.watcher.log)
    options_.watcher.log(
        fmt::format("The files of task '{}' will not be found: {}", attempt->task, to_string(noted.error())));
}

/// In the words of one machine, where it is known for whom it makes room.
std::string PodContainerizer::why_evicted(const PodView& view) const {
  if (!view.preemption) return view.why;
  const auto& [lent, winner] = *view.preemption;
  return placement::why_preempted(lent ? std::optional(std::string()) : std::nullopt,
                                  task_of(view.name_space, winner).value_or(winner));
}

/// The task that a pod is an attempt at; nullopt when none of ours is.
std::optional<std::string> PodContainerizer::task_of(const std::string& name_space,
                                                     const std::string& pod) const {
  const auto attempt = find(pod.substr(0, pod.rfind('-')));
  const bool is_its = attempt && attempt->path.name == pod && attempt->path.name_space == name_space;
  return is_its ? std::optional(attempt->task) : std::nullopt;
}

bool PodContainerizer::tell(const AttemptPointer& attempt, News news, const View& view) {
  const auto& watcher = options_.watcher;
  const Error never_ran{ErrorKind::kConflict, "It was stopped before it was started", "", ""};
  switch (news) {
    case News::kNone:
      if (view && attempt->expected == Expected::kRunning) tell_start(attempt, view);
      return false;
    case News::kPlaced:
      attempt->expected = Expected::kPlaced;
      tell_start(attempt, view);
      return true;
    case News::kStarted:
      attempt->expected = Expected::kRunning;
      streams_.follow(attempt->stream);  // before anybody may want to write
      tell_start(attempt, view);
      return true;
    case News::kEvicted:
      attempt->expected = Expected::kStopping;
      tell_start(attempt, view);
      if (watcher.evicted) watcher.evicted(attempt->task, attempt->number, why_evicted(*view));
      return true;
    case News::kEnded:
    case News::kLost:
      attempt->over = true;
      tell_end(attempt, news, view);
      return true;
    case News::kNeverRan:
      attempt->over = true;
      if (watcher.failed) watcher.failed(attempt->task, attempt->number, never_ran);
      return true;
    case News::kPutBack:
      attempt->over = true;
      if (watcher.put_back)
        watcher.put_back(
            attempt->task, attempt->number,
            {ErrorKind::kUnavailable, view->why.empty() ? "its node refused it" : view->why, "", ""});
      return true;
  }
  return false;
}

void PodContainerizer::tell_end(const AttemptPointer& attempt, News news, const View& view) {
  if (view) tell_start(attempt, view);
  const bool asked = attempt->expected == Expected::kStopping || attempt->expected == Expected::kCancelled;
  auto ending = ending_of(view.get(), news == News::kLost, asked);
  if (ending.finished_at == TimePoint{}) ending.finished_at = wall_clock();
  if (const auto copied = streams_.finish(attempt->stream); !copied && options_.watcher.log)
    options_.watcher.log(
        fmt::format("What task '{}' wrote last is lost: {}", attempt->task, to_string(copied.error())));
  options_.watcher.ended(attempt->task, std::move(ending));
}

Status PodContainerizer::perform(const AttemptPointer& attempt, Deed deed, const View& view) {
  switch (deed) {
    case Deed::kNone:
      return {};
    case Deed::kCreate:
      // It was there, and somebody took it away by force before it had a place.
      attempt->over = true;
      if (options_.watcher.put_back)
        options_.watcher.put_back(attempt->task, attempt->number,
                                  {ErrorKind::kUnavailable, "somebody has deleted its pod", "", ""});
      return {};
    case Deed::kDelete: {
      DROVER_TRY(const auto left, store_.remove(attempt->path, view->uid, attempt->forced));
      see(attempt, left);
      return {};
    }
    case Deed::kRelease: {
      DROVER_CHECK_OK(store_.release(*view));
      DROVER_TRY(const auto left, store_.look(attempt->path));
      see(attempt, left && read_pod(*left).uid == view->uid ? left : std::nullopt);
      return {};
    }
  }
  return {};
}

// The calls

Status PodContainerizer::launch(const container::Launch& launch) {
  const auto environment = environment_of(launch, options_.pods);
  auto pod = write_pod(
      {launch.task, launch.attempt, environment, launch.host_ports, launch.node_rules, launch.secrets},
      options_.pods);
  if (!pod) return Failure(join(pod.error()));
  DROVER_TRY(const auto folder, tasks_.make_subdirectory(launch.task.id, 0711));
  DROVER_CHECK_OK(folder.make_subdirectory(kSandboxFolder, 0755));
  DROVER_CHECK_OK(folder.write("record", launch.record, 0600));
  const auto attempt = std::make_shared<Attempt>();
  attempt->task = launch.task.id;
  attempt->number = launch.attempt;
  attempt->path = path_of(read_pod(*pod));
  attempt->priority = launch.task.priority;
  const bool reads = launch.task.takes_input || launch.task.terminal;
  attempt->stream = PodStreams::begin(attempt->task, attempt->path,
                                      reads ? std::optional(PodInput{launch.task.terminal}) : std::nullopt);
  attempt->pod = std::move(*pod);
  for (const auto& name : launch.secrets) attempt->secrets.emplace(name, environment.at(name));
  begin(attempt);
  return {};
}

void PodContainerizer::begin(const AttemptPointer& attempt) {
  {
    const std::lock_guard lock(mutex_);
    attempts_[attempt->task] = attempt;
    cleaned_.erase(attempt->task);
  }
  const std::lock_guard lock(attempt->mutex);
  look_at(attempt);
}

Status PodContainerizer::stop(const std::string& task_id, bool force) {
  const auto attempt = find(task_id);
  if (!attempt) return {};
  const std::lock_guard lock(attempt->mutex);
  if (attempt->over) return {};
  attempt->forced = attempt->forced || force;
  const bool waits = attempt->expected == Expected::kWaiting || attempt->expected == Expected::kCancelled;
  attempt->expected = waits ? Expected::kCancelled : Expected::kStopping;
  if (attempt->made) {
    DROVER_TRY(const auto left, store_.remove(attempt->path, "", attempt->forced));
    see(attempt, left);
  }
  look_at(attempt);
  return {};
}

Result<Found> PodContainerizer::recover(const std::string& task_id, int number) {
  std::vector<View> views;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = pods_.find(task_id); found != pods_.end())
      for (const auto& [key, view] : found->second) views.push_back(view);
  }
  const auto own = std::ranges::find(views, number, [](const View& view) { return view->attempt; });
  for (const auto& view : views)
    if (view->attempt < number) DROVER_CHECK_OK(store_.release(*view));
  if (own == views.end()) return Found::kNever;
  const auto& view = *own;
  const auto attempt = std::make_shared<Attempt>();
  attempt->task = task_id;
  attempt->number = number;
  attempt->path = path_of(*view);
  attempt->made = view->claim.empty() || view->actual != Actual::kUnplaced;
  attempt->uid = view->uid;
  attempt->view = view;
  auto reads = view->takes_input ? std::optional<PodInput>(PodInput()) : std::nullopt;
  if (reads && view->has_terminal) reads->terminal.emplace();  // who writes says anew how large his is
  attempt->stream = PodStreams::begin(task_id, attempt->path, std::move(reads));
  begin(attempt);
  const std::lock_guard lock(attempt->mutex);
  return attempt->over ? Found::kEnded : Found::kAlive;
}

Status PodContainerizer::clean(const std::string& task_id) {
  AttemptPointer attempt;
  std::map<std::string, View> left;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = attempts_.find(task_id); found != attempts_.end()) attempt = found->second;
    if (const auto found = pods_.find(task_id); found != pods_.end()) left = found->second;
    cleaned_.insert(task_id);
  }
  if (attempt) {
    const std::lock_guard lock(attempt->mutex);
    attempt->over = true;
    PodStreams::break_off(attempt->stream);
    const auto view = view_of(attempt);
    if (view) left.insert_or_assign(view->name_space + "/" + view->name, view);
  }
  for (const auto& [key, view] : left) DROVER_CHECK_OK(store_.release(*view));
  const std::lock_guard lock(mutex_);
  if (const auto found = attempts_.find(task_id); found != attempts_.end() && found->second == attempt)
    attempts_.erase(found);
  return {};
}

Status PodContainerizer::forget(const std::string& task_id) {
  DROVER_CHECK_OK(clean(task_id));
  if (const auto folder = tasks_.subdirectory(task_id); folder && options_.agents != nullptr)
    if (const auto removed = remove_sandboxes(*folder, *options_.agents); !removed && options_.watcher.log)
      options_.watcher.log(fmt::format("A sandbox of task '{}' stays until its time is over: {}", task_id,
                                       to_string(removed.error())));
  DROVER_CHECK_OK(tasks_.remove_tree(task_id));
  const std::lock_guard lock(mutex_);
  cleaned_.erase(task_id);
  return {};
}

Result<std::unique_ptr<container::ExecProcess>> PodContainerizer::exec(
    const std::string& task_id, const container::ExecRequest& request) {
  const auto attempt = find(task_id);
  const auto view = attempt ? view_of(attempt) : nullptr;
  if (!view || view->actual != Actual::kRunning)
    return fail(ErrorKind::kConflict, fmt::format("The container of task '{}' does not run", task_id));
  if (!options_.server) return fail(ErrorKind::kUnsupported, "No commands are run in containers here");
  return start_exec(*options_.server, *view, request);
}

Result<UniqueFd> PodContainerizer::connect_input(const std::string& task_id) {
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  return container::connect_input(folder);
}

}  // namespace drover::pods
