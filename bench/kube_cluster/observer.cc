#include "observer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace drover::bench {
namespace {

using nlohmann::json;

bool is_told_why(const json& pod) {
  static const json::json_pointer kConditions("/status/conditions");
  if (!pod.contains(kConditions)) return false;
  for (const auto& condition : pod.at(kConditions))
    if (condition.value("type", "") == "PodScheduled" && !condition.value("message", "").empty()) return true;
  return false;
}

}  // namespace

Result<std::unique_ptr<Observer>> Observer::start(kube::Api& api, const std::string& name_space,
                                                  const std::string& scheduler, Seen what,
                                                  std::string prefix) {
  kube::WatchRequest request;
  request.selection = {.resource = kube::kPods,
                       .name_space = name_space,
                       .field_selector = "spec.schedulerName=" + scheduler,
                       .managed_fields = false};
  // A watch of those with a node has one event of each pod that is bound, and no others.
  if (what == Seen::kBound) request.selection.field_selector += ",spec.nodeName!=";
  const kube::ListListener listener{.begin = [] {}, .take = [](json&) {}};
  DROVER_TRY(request.resource_version, api.list_each(request.selection, listener));
  return std::unique_ptr<Observer>(new Observer(api, std::move(request), what, std::move(prefix)));
}

Observer::Observer(kube::Api& api, kube::WatchRequest request, Seen what, std::string prefix)
    : api_(api),
      request_(std::move(request)),
      what_(what),
      prefix_(std::move(prefix)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Observer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto ended = api_.watch(
        request_,
        [this](const kube::WatchEvent& event) -> Status {
          const auto now = std::chrono::system_clock::now();
          request_.resource_version = kube::text_at(*event.object, "/metadata/resourceVersion");
          if (event.type == kube::WatchEventType::kBookmark || event.type == kube::WatchEventType::kDeleted)
            return {};
          const auto name = kube::text_at(*event.object, "/metadata/name");
          if (!name.starts_with(prefix_)) return {};
          if (what_ == Seen::kReason && !is_told_why(*event.object)) return {};
          const std::lock_guard lock(mutex_);
          if (seen_.emplace(name, now).second) changed_.notify_all();
          return {};
        },
        stop);
    if (!ended && !stop.stop_requested())
      fmt::print(stderr, "the watch ended: {}\n", to_string(ended.error()));
  }
}

bool Observer::wait_for(std::size_t count, std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return seen_.size() >= count; });
}

std::map<std::string, WallTime> Observer::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

}  // namespace drover::bench
