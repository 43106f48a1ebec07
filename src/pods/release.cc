#include "pods/release.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "pods/pod_store.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

using nlohmann::json;

const kube::Resource kLeases = {"coordination.k8s.io", "v1", "leases"};
const kube::Resource kDeployments = {"apps", "v1", "deployments"};
constexpr const char* kJournalAnnotation = "drover.dev/journal";
constexpr int kTries = 10;  ///< whoever has the Lease writes to it too
constexpr std::chrono::milliseconds kLook{500};

std::string journal_of(const json& lease) {
  const auto annotations = lease.at("metadata").value("annotations", json::object());
  return annotations.value(kJournalAnnotation, "");
}

/// Nobody has it, or nobody has renewed it for as long as it lasts.
Result<json> wait_until_free(kube::Api& api, const kube::ObjectPath& path,
                             std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + patience;
  auto seen = Clock::now();
  std::string renewed;
  while (true) {
    DROVER_TRY(auto lease, api.get(path));
    const auto now = kube::text_at(lease, "/spec/renewTime");
    if (now != renewed) seen = Clock::now();
    renewed = now;
    const auto lasts = lease.value("/spec/leaseDurationSeconds"_json_pointer, 0);
    if (kube::text_at(lease, "/spec/holderIdentity").empty() ||
        Clock::now() - seen > std::chrono::seconds(lasts))
      return lease;
    if (Clock::now() > end)
      return fail(ErrorKind::kConflict,
                  fmt::format("'{}' still has the lease '{}'", kube::text_at(lease, "/spec/holderIdentity"),
                              path.name),
                  "end the control plane before");
    std::this_thread::sleep_for(kLook);
  }
}

Status end_control_plane(kube::Api& api, const kube::ObjectPath& lease) {
  const auto ended = api.patch({kDeployments, lease.name_space, lease.name}, kube::PatchType::kMerge,
                               {{"spec", {{"replicas", 0}}}});
  return ended || ended.error().kind == ErrorKind::kNotFound ? Status() : Failure(ended.error());
}

Status release_pods(kube::Api& api, const std::string& journal, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const kube::Selection own{.resource = kube::kPods,
                            .label_selector = fmt::format("{}={}", kJournalLabel, journal)};
  PodStore store(api);
  while (true) {
    DROVER_TRY(const auto pods, api.list(own));
    for (const auto& pod : pods.items) DROVER_CHECK_OK(store.release(read_pod(*pod)));
    if (pods.items.empty() || std::chrono::steady_clock::now() > end) return {};
    std::this_thread::sleep_for(kLook);
  }
}

Status remove_priorities(kube::Api& api) {
  DROVER_TRY(const auto made, api.list({.resource = kPriorityClasses,
                                        .label_selector = "app.kubernetes.io/managed-by=drover"}));
  for (const auto& one : made.items)
    DROVER_CHECK_OK(api.remove({kPriorityClasses, "", kube::text_at(*one, "/metadata/name")}));
  return {};
}

}  // namespace

Status note_journal(kube::Api& api, const std::string& name_space, const std::string& lease,
                    const std::string& journal) {
  const kube::ObjectPath path{kLeases, name_space, lease};
  Status done;
  for (int i = 0; i < kTries; ++i) {
    DROVER_TRY(auto now, api.get(path));
    if (journal_of(now) == journal) return {};
    now["metadata"]["annotations"][kJournalAnnotation] = journal;
    done = api.write(path, now);
    if (done || done.error().kind != ErrorKind::kConflict) break;
  }
  return done;
}

Status release_tasks(kube::Api& api, const std::string& name_space, const std::string& lease,
                     std::chrono::milliseconds patience) {
  const kube::ObjectPath path{kLeases, name_space, lease};
  DROVER_CHECK_OK(end_control_plane(api, path));
  const auto free = wait_until_free(api, path, patience);
  if (!free) return free.error().kind == ErrorKind::kNotFound ? Status() : Failure(free.error());
  if (const auto journal = journal_of(*free); !journal.empty()) {
    DROVER_CHECK_OK(release_pods(api, journal, patience));
    DROVER_CHECK_OK(remove_priorities(api));
  }
  return api.remove(path);
}

Status remove_lease(kube::Api& api, const std::string& name_space, const std::string& lease,
                    std::chrono::milliseconds patience) {
  const kube::ObjectPath path{kLeases, name_space, lease};
  const auto free = wait_until_free(api, path, patience);
  if (!free) return free.error().kind == ErrorKind::kNotFound ? Status() : Failure(free.error());
  return api.remove(path);
}

}  // namespace drover::pods
