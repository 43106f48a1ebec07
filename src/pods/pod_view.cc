#include "pods/pod_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/instant.h"
#include "base/text.h"
#include "kube/client/object.h"
#include "kube/gpu_topology.h"
#include "pods/gpu_claim.h"

namespace drover::pods {
namespace {

using nlohmann::json;

/// Why a container waits that its node cannot start, whatever it tries.
constexpr std::array<std::string_view, 4> kHopeless = {"ImagePullBackOff", "ErrImageNeverPull",
                                                       "InvalidImageName", "CreateContainerConfigError"};
constexpr int kNotStarted = 125;  ///< as engines of containers say it

const json& part(const json& value, std::string_view name) {
  static const json none;
  if (!value.is_object()) return none;
  const auto found = value.find(name);
  return found == value.end() ? none : *found;
}

std::string text(const json& value, std::string_view name) {
  const auto& found = part(value, name);
  return found.is_string() ? found.get<std::string>() : "";
}

int number(const json& value, std::string_view name) {
  const auto& found = part(value, name);
  return found.is_number_integer() ? found.get<int>() : 0;
}

std::optional<TimePoint> time(const json& value, std::string_view name) {
  const auto parsed = parse_instant(text(value, name));
  return parsed ? std::optional(*parsed) : std::nullopt;
}

/// Those of a list with commas.
std::vector<std::string> words(std::string_view list) {
  std::vector<std::string> found;
  while (!list.empty()) {
    const auto word = list.substr(0, list.find(','));
    if (!word.empty()) found.emplace_back(word);
    list.remove_prefix(std::min(list.size(), word.size() + 1));
  }
  return found;
}

/// The one of a list whose field has that value; null when there is none.
const json& item(const json& list, std::string_view field, std::string_view value) {
  static const json none;
  if (list.is_array())
    for (const auto& each : list)
      if (text(each, field) == value) return each;
  return none;
}

/// Of the conditions, when it is true.
const json& condition(const json& status, std::string_view type) {
  static const json none;
  const auto& found = item(part(status, "conditions"), "type", type);
  return text(found, "status") == "True" ? found : none;
}

/// A node that has gone says nothing more: of what was on it, nobody knows how it ended.
bool is_of_lost_node(const json& disruption) {
  return text(disruption, "reason") == "DeletionByPodGC";
}

bool is_ending(Actual actual) {
  return actual == Actual::kPlacedLeaving || actual == Actual::kPlacedEvicted ||
         actual == Actual::kRunningLeaving || actual == Actual::kRunningEvicted;
}

/// As the API server counts it: from when it was deleted first.
std::optional<TimePoint> shortened_end(const json& pod) {
  const auto& metadata = part(pod, "metadata");
  const auto& left = part(metadata, "deletionGracePeriodSeconds");
  const auto& own = part(part(pod, "spec"), "terminationGracePeriodSeconds");
  if (!left.is_number_integer() || !own.is_number_integer() || left >= own) return std::nullopt;
  return time(metadata, "deletionTimestamp");
}

/// Reads the status of one pod.
class StatusReader {
 public:
  StatusReader(const json& pod, PodView& view)
      : status_(part(pod, "status")),
        leaving_(view.leaving),
        disruption_(condition(status_, "DisruptionTarget")),
        state_(part(item(part(status_, "containerStatuses"), "name", kContainer), "state")),
        view_(view) {}

  void read() {
    const auto phase = text(status_, "phase");
    const bool over = phase == "Succeeded" || phase == "Failed";
    if (const auto& terminated = part(state_, "terminated"); terminated.is_object()) return ended(terminated);
    if (over) return over_without_word();
    if (const auto& running = part(state_, "running"); running.is_object()) {
      view_.started_at = time(running, "startedAt");
      return go(Actual::kRunning, Actual::kRunningLeaving, Actual::kRunningEvicted);
    }
    if (view_.node.empty()) return unplaced();
    if (cannot_start()) return;
    go(Actual::kPlaced, Actual::kPlacedLeaving, Actual::kPlacedEvicted);
    if (view_.why.empty()) view_.why = text(part(state_, "waiting"), "message");
  }

 private:
  void go(Actual stays, Actual leaves, Actual evicted) {
    const bool makes_room = leaving_ && disruption_.is_object();
    view_.actual = makes_room ? evicted : leaving_ ? leaves : stays;
    if (makes_room) make_room();
  }

  void make_room() {
    view_.why = text(disruption_, "message");
    if (text(disruption_, "reason") == kube::scheduler::kPreempted)
      view_.preemption = kube::scheduler::read_preemption(view_.why);
  }

  void unplaced() {
    view_.actual = leaving_ ? Actual::kUnplacedLeaving : Actual::kUnplaced;
    const auto& scheduled = item(part(status_, "conditions"), "type", "PodScheduled");
    if (text(scheduled, "status") == "False") view_.why = text(scheduled, "message");
  }

  void ended(const json& terminated) {
    const bool evicted = disruption_.is_object();
    view_.ending.stopped = leaving_ || evicted;
    view_.actual = evicted ? Actual::kEndedEvicted : Actual::kEnded;
    if (evicted) make_room();
    view_.started_at = time(terminated, "startedAt");
    auto& ending = view_.ending;
    ending.exit_status = std::clamp(number(terminated, "exitCode"), 0, 255);
    const auto reason = text(terminated, "reason");
    ending.out_of_memory = reason == "OOMKilled";
    if (reason == "StartError" || reason == "ContainerCannotRun")
      ending.message = text(terminated, "message");
    if (text(status_, "reason") == "Evicted") ending.message = text(status_, "message");
    ending.finished_at = time(terminated, "finishedAt").value_or(TimePoint{});
  }

  /// Its node would try for ever: the task ends instead, as on one machine.
  bool cannot_start() {
    if (leaving_) return false;
    if (is_hopeless(state_)) return true;
    return std::ranges::any_of(init_statuses(),
                               [this](const auto& each) { return is_hopeless(part(each, "state")); });
  }

  bool is_hopeless(const json& state) {
    const auto& waiting = part(state, "waiting");
    const auto reason = text(waiting, "reason");
    if (std::ranges::find(kHopeless, reason) == kHopeless.end()) return false;
    view_.actual = Actual::kEnded;
    view_.ending.exit_status = kNotStarted;
    const auto said = text(waiting, "message");
    view_.ending.message = fmt::format("it could not be started: {}", said.empty() ? reason : said);
    return true;
  }

  /// What was to bring its files has failed: then the task was never begun, and has an end all the same.
  bool has_no_files() {
    for (const auto& each : init_statuses()) {
      const auto& terminated = part(part(each, "state"), "terminated");
      if (!terminated.is_object() || number(terminated, "exitCode") == 0) continue;
      view_.actual = Actual::kEnded;
      view_.ending.exit_status = std::clamp(number(terminated, "exitCode"), 1, 255);
      const auto message = text(terminated, "message");
      const auto said = trimmed(message);
      view_.ending.message =
          fmt::format("its files could not be brought{}{}", said.empty() ? "" : ": ", said);
      view_.ending.finished_at = time(terminated, "finishedAt").value_or(TimePoint{});
      return true;
    }
    return false;
  }

  const json& init_statuses() const {
    static const json none = json::array();
    const auto& all = part(status_, "initContainerStatuses");
    return all.is_array() ? all : none;
  }

  void over_without_word() {
    if (has_no_files()) return;
    const auto reason = text(status_, "reason"), message = text(status_, "message");
    const bool has_run = part(state_, "running").is_object();
    if (!has_run && !is_of_lost_node(disruption_)) {
      view_.actual = Actual::kRefused;
      view_.why = fmt::format("{}{}{}", reason, reason.empty() || message.empty() ? "" : ": ", message);
      return;
    }
    view_.actual = Actual::kLost;
    view_.ending.lost = true;
    view_.ending.message = is_of_lost_node(disruption_) ? "its node is gone: nobody can say how it ended"
                                                        : "its node does not say how it ended";
  }

  const json& status_;
  bool leaving_;
  const json& disruption_;
  const json& state_;
  PodView& view_;
};

}  // namespace

workload::Ending ending_of(const PodView* view, bool lost, bool asked) {
  auto ending = view != nullptr ? view->ending : workload::Ending();
  if (lost) {
    ending.lost = true;
    if (ending.message.empty())
      ending.message = view == nullptr     ? "its pod is gone: nobody can say how it ended"
                       : view->why.empty() ? "its node does not say how it ended"
                                           : view->why;
  } else if (ending.stopped && !asked && ending.exit_status != 0) {
    ending.message =
        fmt::format("exited with status {} after somebody had deleted its pod", ending.exit_status);
  }
  return ending;
}

PodView read_pod(const json& pod) {
  PodView view;
  const auto& labels = part(part(pod, "metadata"), "labels");
  view.name_space = kube::text_at(pod, "/metadata/namespace");
  view.name = kube::text_at(pod, "/metadata/name");
  view.uid = kube::text_at(pod, "/metadata/uid");
  view.node = kube::text_at(pod, "/spec/nodeName");
  view.address = kube::text_at(pod, "/status/podIP");
  const auto& container = item(part(part(pod, "spec"), "containers"), "name", kContainer);
  view.takes_input = part(container, "stdin") == true;
  view.has_terminal = part(container, "tty") == true;
  const auto& annotations = part(part(pod, "metadata"), "annotations");
  view.gpus = words(text(annotations, kube::kChosenGpusAnnotation));
  if (!text(annotations, kClaimAnnotation).empty()) {
    view.gpus = words(text(annotations, kube::kClaimedGpusAnnotation));
    const auto& claims = part(part(pod, "spec"), "resourceClaims");
    if (claims.is_array() && claims.size() == 1) view.claim = text(claims.front(), "resourceClaimName");
  }
  view.task = text(labels, kTaskLabel);
  view.journal = text(labels, kJournalLabel);
  const auto version = kube::text_at(pod, "/metadata/resourceVersion");
  std::from_chars(version.data(), version.data() + version.size(), view.version);
  view.leaving = !kube::text_at(pod, "/metadata/deletionTimestamp").empty();
  const auto& finalizers = part(part(pod, "metadata"), "finalizers");
  view.held = finalizers.is_array() && std::ranges::find(finalizers, kFinalizer) != finalizers.end();
  const auto attempt = text(labels, kAttemptLabel);
  std::from_chars(attempt.data(), attempt.data() + attempt.size(), view.attempt);
  StatusReader(pod, view).read();
  if (is_ending(view.actual)) view.due_at = shortened_end(pod);
  return view;
}

}  // namespace drover::pods
