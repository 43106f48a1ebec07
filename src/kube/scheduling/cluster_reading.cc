#include "kube/scheduling/cluster_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/pause.h"
#include "kube/scheduling/cluster_kinds.h"
#include "placement/words.h"

namespace drover::kube {
namespace {

using nlohmann::json;

class ClusterReading {
 public:
  ClusterReading(Api& api, const ReadingOptions& options, scheduler::Scheduler& to)
      : api_(api), options_(options), to_(to), timer_([this](const std::stop_token& stop) {
          if (pause(options_.patience, stop)) late_.request_stop();
        }) {}

  Status read() {
    for (const auto& kind : cluster_kinds(options_.version, options_.warn)) {
      std::vector<SchedulerChange> changes;
      const auto take = [&](const json& object) {
        auto change = kind.read(object);
        if (change)
          changes.push_back(std::move(change->put));
        else
          options_.warn(to_string(change.error()));
      };
      DROVER_CHECK_OK(read_kind(kind.resource, kind.everywhere, {[&] { changes.clear(); }, take}));
      for (const auto& change : changes) change(to_);
    }
    SharingObjects sharing;
    DROVER_CHECK_OK(read_kind(scheduler::kQueues, false, kept_in(sharing.queues)));
    DROVER_CHECK_OK(read_kind(scheduler::kQuotas, false, kept_in(sharing.quotas)));
    put_sharing(sharing)(to_);
    DROVER_CHECK_OK(read_groups());
    if (missing_.empty()) return {};
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("You may not list {} of the whole cluster, which decide where pods may run",
                            placement::list_text(missing_, "and")),
                "ask the cluster's administrator for the ClusterRole 'drover-view'");
  }

 private:
  static ListListener kept_in(std::map<std::string, Object>& objects) {
    return {[&objects] { objects.clear(); },
            [&objects](json& object) {
              auto name = text_at(object, "/metadata/name");
              objects.emplace(std::move(name), std::make_shared<const json>(std::move(object)));
            }};
  }

  Status read_kind(const Resource& resource, bool everywhere, const ListListener& listener) {
    if (!everywhere) {
      DROVER_TRY(const bool served, is_served(api_, resource));
      if (!served) return {};
    }
    const auto done =
        api_.list_each({.resource = resource, .managed_fields = false}, listener, late_.get_token());
    return done ? Status() : note(done.error(), resource);
  }

  /// What is seldom asked for is read one by one.
  Status read_groups() {
    for (const auto& path : to_.absent_groups()) {
      const auto object = api_.send({.verb = "get", .path = path}, late_.get_token());
      if (object)
        put_group(path.resource, *object)(to_);
      else if (object.error().kind != ErrorKind::kNotFound)
        DROVER_CHECK_OK(note(object.error(), path.resource));
    }
    return {};
  }

  /// A right that is missing is told of together with the others.
  Status note(const Error& error, const Resource& resource) {
    if (late_.stop_requested())
      return fail(ErrorKind::kTimeout,
                  fmt::format("The cluster could not be read within {}", format_duration(options_.patience)),
                  "see whether its API server is well: kubectl get --raw=/readyz");
    if (error.kind != ErrorKind::kPermissionDenied) return Failure(error);
    auto what = resource.plural + (resource.group.empty() ? "" : "." + resource.group);
    if (std::ranges::find(missing_, what) == missing_.end()) missing_.push_back(std::move(what));
    return {};
  }

  Api& api_;
  const ReadingOptions& options_;
  scheduler::Scheduler& to_;
  std::vector<std::string> missing_;
  std::stop_source late_;
  std::jthread timer_;
};

}  // namespace

Status read_cluster(Api& api, const ReadingOptions& options, scheduler::Scheduler& to) {
  return ClusterReading(api, options, to).read();
}

}  // namespace drover::kube
