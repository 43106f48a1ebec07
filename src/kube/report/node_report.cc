#include "kube/report/node_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/gpu_topology.h"
#include "kube/labels/apply.h"

namespace drover::kube {
namespace {

constexpr std::size_t kMostChanges = 256;  // that wait for the API server
constexpr int kTries = 6;                  // to learn which pods are to be told

std::string name_of(const gpu::Device& device) {
  return fmt::format("GPU {} ({})", device.index, device.uuid);
}

}  // namespace

NodeReport::NodeReport(NodeReportOptions options)
    : options_(std::move(options)),
      labels_trouble_(options_.warn),
      conditions_trouble_(options_.warn),
      pods_trouble_(options_.warn),
      writer_([this](const std::stop_token& stop) { keep_written(stop); }),
      reporter_([this](const std::stop_token& stop) { keep_reporting(stop); }) {}

NodeReport::~NodeReport() {
  writer_.request_stop();
  reporter_.request_stop();
  writer_.join();
  reporter_.join();
}

bool NodeReport::needs_api() const {
  return options_.conditions || options_.events || (options_.labels && options_.feature_file.empty());
}

void NodeReport::reach(std::shared_ptr<Api> api) {
  const std::lock_guard lock(mutex_);
  work_.api = std::move(api);
  fresh_ = true;
  changed_.notify_all();
}

void NodeReport::update(NodeState state) {
  const std::lock_guard lock(mutex_);
  if (work_.state == state) return;
  work_.state = std::move(state);
  fresh_ = true;
  changed_.notify_all();
}

void NodeReport::changed(const gpu::HealthChange& change) {
  const std::lock_guard lock(mutex_);
  if (work_.changes.size() == kMostChanges) work_.changes.pop_front();
  work_.changes.push_back(change);
  changed_.notify_all();
}

void NodeReport::keep_written(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  auto pause = options_.again;
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, pause, [this] { return fresh_; });
    if (stop.stop_requested()) return;
    const bool again = !std::exchange(fresh_, false);
    const auto work = work_;
    lock.unlock();
    pause = !work.state || write(work, again) ? options_.again : options_.retry;
    lock.lock();
  }
}

void NodeReport::keep_reporting(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto is_due = [this] { return work_.api && work_.state && !work_.changes.empty(); };
  while (changed_.wait(lock, stop, is_due)) {
    auto work = work_;
    work_.changes.clear();
    lock.unlock();
    const auto sent = report_on_node(work);
    int tries = sent.empty() ? 0 : kTries;
    while (tries > 0 && !report_on_pods(*work.state, sent, --tries == 0)) {
      lock.lock();
      changed_.wait_for(lock, stop, options_.retry, [&] { return work_.state != work.state; });
      work.state = work_.state;
      lock.unlock();
      if (stop.stop_requested()) return;
    }
    lock.lock();
  }
}

bool NodeReport::write(const Work& work, bool again) {
  const auto labels = write_labels(work, again);
  labels_trouble_.report(labels ? Status() : Failure(context(labels.error(), "labels are not written")));
  const auto conditions = write_conditions(work, again);
  conditions_trouble_.report(conditions ? Status()
                                        : Failure(context(conditions.error(), "conditions are not written")));
  return labels && conditions;
}

Status NodeReport::write_labels(const Work& work, bool again) {
  if (!options_.labels) return {};
  const bool to_file = !options_.feature_file.empty();
  if (!to_file && !work.api) return {};
  std::pair<Labels, Labels> wanted;
  auto& [labels, annotations] = wanted;
  labels = node_labels(read_node_facts(options_.root, work.state->inventory, work.state->offered),
                       options_.config);
  if (to_file) return write_feature_file(options_.feature_file, labels);
  if (const auto& whole = work.state->whole; !whole.devices.empty())
    annotations.emplace(kTopologyAnnotation, write_topology(whole));
  if (!again && wanted == labels_written_) return {};
  labels_written_ = {};  // nobody knows what stands there after a failure
  DROVER_CHECK_OK(apply_labels(*work.api, options_.node, labels, annotations));
  labels_written_ = std::move(wanted);
  return {};
}

Status NodeReport::write_conditions(const Work& work, bool again) {
  if (!options_.conditions || !work.api) return {};
  auto conditions = node_conditions(*work.state);
  if (!again && conditions == conditions_written_) return {};
  conditions_written_.clear();
  for (const auto& condition : conditions)
    DROVER_CHECK_OK(set_node_condition(*work.api, options_.node, condition, wall_clock()));
  conditions_written_ = std::move(conditions);
  return {};
}

std::vector<NodeReport::SentEvent> NodeReport::report_on_node(const Work& work) {
  if (!options_.events) return {};
  if (!events_)
    events_ = std::make_unique<EventRecorder>(*work.api, EventSource{.host = options_.node},
                                              [warn = options_.warn](const Error& error) {
                                                if (warn) warn(to_string(error));
                                              });
  std::vector<SentEvent> sent;
  for (const auto& change : work.changes) {
    const auto& devices = work.state->inventory.devices;
    const auto device = std::ranges::find(devices, change.uuid, &gpu::Device::uuid);
    if (device == devices.end()) continue;
    for (auto& event : events_of(change, name_of(*device))) {
      events_->record({.kind = "Node", .name = options_.node}, event.text);
      if (event.for_pods) sent.push_back({change.uuid, std::move(event)});
    }
  }
  return sent;
}

bool NodeReport::report_on_pods(const NodeState& state, const std::vector<SentEvent>& sent,
                                bool in_any_case) {
  const bool parts_known = std::ranges::all_of(
      sent, [&](const SentEvent& one) { return knows_instance(state, one.uuid, one.event.instance); });
  if (!parts_known && !in_any_case) return false;
  const auto containers = options_.containers();
  const auto known = options_.pod_uids();
  pods_trouble_.report(!containers ? Failure(containers.error())
                       : !known    ? Failure(known.error())
                                   : Status());
  if ((!containers || !known) && !in_any_case) return false;
  const auto uids = known.value_or(std::map<PodName, std::string>{});
  for (const auto& [uuid, event] : sent)
    for (const auto& pod : pods_with(uuid, event.instance, state, {options_.driver, options_.node},
                                     containers.value_or(std::vector<ContainerUse>{}))) {
      const auto uid = uids.find(pod);
      events_->record({.kind = "Pod",
                       .name_space = pod.name_space,
                       .name = pod.name,
                       .uid = uid == uids.end() ? "" : uid->second},
                      event.text);
    }
  return true;
}

}  // namespace drover::kube
