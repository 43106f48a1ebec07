#include "pods/pod_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/dra/device_status.h"
#include "kube/scheduler/gangs/member.h"
#include "pods/gpu_claim.h"
#include "pods/pod_writer.h"

namespace drover::pods {
namespace {

using nlohmann::json;

const kube::Resource kNameSpaces = {"", "v1", "namespaces"};
const kube::Resource kServices = {"", "v1", "services"};
const kube::Resource kSecrets = {"", "v1", "secrets"};
/// Who deletes a namespace, and makes one of its name, waits so long for tasks that last.
constexpr std::chrono::seconds kNameSpaceFresh{30};
constexpr std::chrono::milliseconds kTierPatience{1000};
constexpr int kAtOnce = 1;  ///< second: with none, nobody waits for the node to say that it has ended

Result<std::optional<json>> there(Result<json> answer) {
  if (answer) return std::optional(std::move(*answer));
  if (answer.error().kind == ErrorKind::kNotFound) return std::nullopt;
  return Failure(answer.error());
}

bool is_first_of_gang(const json& pod) {
  const auto& labels = pod.at("metadata").at("labels");
  const auto rank = labels.find(kube::scheduler::kGangRank);
  return rank != labels.end() && *rank == "0";
}

bool is_same_attempt(const json& one, const json& other) {
  const auto a = read_pod(one), b = read_pod(other);
  return a.task == b.task && a.attempt == b.attempt && a.journal == b.journal;
}

}  // namespace

kube::ObjectPath path_of(const PodView& pod) {
  return {kube::kPods, pod.name_space, pod.name};
}

Result<json> PodStore::make(const json& pod, int priority,
                            const std::map<std::string, std::string>& secrets) {
  DROVER_CHECK_OK(ensure_priority(priority));
  DROVER_TRY(auto owned, with_owner(pod));
  auto made = make_whole(owned, secrets);
  if (!made && made.error().kind == ErrorKind::kNotFound) {  // its namespace has just gone
    {
      const std::lock_guard lock(mutex_);
      name_spaces_.erase(kube::text_at(pod, "/metadata/namespace"));
    }
    DROVER_TRY(owned, with_owner(pod));
    made = make_whole(owned, secrets);
  }
  // From here on they end together.
  if (made) DROVER_CHECK_OK(put_secret(*made, secrets));
  if (made) DROVER_CHECK_OK(ensure_claim(*made));
  if (made && is_first_of_gang(*made)) {
    // Of an attempt before there may be one yet.
    const auto service = write_gang_service(*made);
    const auto& metadata = service.at("metadata");
    DROVER_CHECK_OK(
        api_.apply({kServices, metadata.at("namespace"), metadata.at("name")}, service, "drover"));
  }
  return made;
}

Status PodStore::put_secret(const json& pod, const std::map<std::string, std::string>& secrets) {
  if (secrets.empty()) return {};
  const auto secret = write_secret(pod, secrets);
  const auto& metadata = secret.at("metadata");
  const auto put = api_.apply({kSecrets, metadata.at("namespace"), metadata.at("name")}, secret, "drover");
  return put ? Status() : Failure(put.error());
}

/// What stands beside it first: whenever it is interrupted, a pod that is there can begin.
Result<json> PodStore::make_whole(const json& pod, const std::map<std::string, std::string>& secrets) {
  DROVER_CHECK_OK(put_secret(pod, secrets));
  const auto path = path_of(read_pod(pod));
  auto made = api_.send({.verb = "create",
                         .path = {path.resource, path.name_space},
                         .content_type = "application/json",
                         .body = pod.dump(),
                         .repeatable = true,
                         .managed_fields = false});
  if (made || made.error().kind != ErrorKind::kConflict) return made;
  const auto known = api_.get(path);
  return known && is_same_attempt(*known, pod) ? known : made;
}

Status PodStore::ensure_claim(const json& pod) {
  if (read_pod(pod).actual != Actual::kUnplaced) return {};
  const auto claim = write_claim(pod);
  if (claim.is_null()) return {};
  const auto& metadata = claim.at("metadata");
  const kube::ObjectPath path{kClaims, metadata.at("namespace"), metadata.at("name")};
  auto there = api_.send({.verb = "create",
                          .path = {path.resource, path.name_space},
                          .content_type = "application/json",
                          .body = claim.dump(),
                          .repeatable = true,
                          .managed_fields = false});
  if (!there && there.error().kind == ErrorKind::kConflict) there = join_claim(path, pod);
  if (!there && there.error().kind == ErrorKind::kNotFound)
    return fail(ErrorKind::kUnsupported, "This cluster's Kubernetes has no claims of devices",
                "shares of GPUs and groups need them: use Kubernetes 1.36 or a newer one");
  if (!there) return Failure(there.error());
  if (asks_for_the_same(*there, claim)) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("The claim '{}' is not kept as it was made: this cluster gives no shares of GPUs",
                          kube::key_of(claim)),
              "it needs Kubernetes 1.36, or the feature gate DRAConsumableCapacity");
}

std::optional<std::string> PodStore::tier_of(const PodView& pod) {
  if (pod.claim.empty()) return "";
  const auto claim =
      api_.send({.verb = "get", .path = {kClaims, pod.name_space, pod.claim}, .patience = kTierPatience});
  if (!claim || !asks_for_shares(*claim)) return "";
  auto tier = kube::dra::tier_in_status(*claim);
  return tier.empty() ? std::nullopt : std::optional(std::move(tier));
}

/// The pod becomes an owner of a claim that is there already.
Result<json> PodStore::join_claim(const kube::ObjectPath& path, const json& pod) {
  const auto owner = owner_of_claim(pod);
  const auto is_leaving = [&] {
    return fail(ErrorKind::kUnavailable,
                fmt::format("waits until the cluster has removed the claim '{}/{}' of an earlier task",
                            path.name_space, path.name));
  };
  auto there = api_.get(path);
  if (!there) return there.error().kind == ErrorKind::kNotFound ? is_leaving() : Failure(there.error());
  const auto owners = there->value("/metadata/ownerReferences"_json_pointer, json::array());
  const bool is_owned =
      std::ranges::any_of(owners, [&](const auto& one) { return one["uid"] == owner["uid"]; });
  const bool is_anothers = owner.contains("controller") && !is_owned;
  if (is_anothers) return is_leaving();
  if (!is_owned)
    there = api_.patch(path, kube::PatchType::kStrategic,
                       {{"metadata", {{"ownerReferences", json::array({owner})}}}});
  if (!there) return there.error().kind == ErrorKind::kNotFound ? is_leaving() : Failure(there.error());
  if (!kube::text_at(*there, "/metadata/deletionTimestamp").empty()) return is_leaving();
  return there;
}

/// Whoever drains a node, or takes one away that has little to do, asks who cares for a pod. All of a user's
/// are his namespace's: it goes with them, and needs no object beside it.
Result<json> PodStore::with_owner(json pod) {
  const auto name = kube::text_at(pod, "/metadata/namespace");
  DROVER_TRY(const auto uid, uid_of_name_space(name));
  if (!uid.empty())
    pod["metadata"]["ownerReferences"] = json::array(
        {{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"name", name}, {"uid", uid}, {"controller", true}}});
  return pod;
}

Result<std::string> PodStore::uid_of_name_space(const std::string& name) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = name_spaces_.find(name);
        known != name_spaces_.end() && now - known->second.seen_at < kNameSpaceFresh)
      return known->second.uid;
  }
  auto seen = api_.get({kNameSpaces, "", name});
  if (!seen && seen.error().kind == ErrorKind::kNotFound) seen = make_name_space(name);
  if (!seen && seen.error().kind != ErrorKind::kPermissionDenied) return Failure(seen.error());
  auto uid = seen ? kube::text_at(*seen, "/metadata/uid") : "";
  const std::lock_guard lock(mutex_);
  name_spaces_[name] = {uid, now};
  return uid;
}

Result<json> PodStore::make_name_space(const std::string& name) {
  const json object = {
      {"apiVersion", "v1"},
      {"kind", "Namespace"},
      {"metadata", {{"name", name}, {"labels", {{"app.kubernetes.io/managed-by", "drover"}}}}}};
  auto made = api_.create({kNameSpaces}, object);
  if (made || made.error().kind != ErrorKind::kConflict) return made;
  return api_.get({kNameSpaces, "", name});
}

Status PodStore::ensure_priority(int priority) {
  const auto name = priority_class(priority);
  if (name.empty()) return {};
  {
    const std::lock_guard lock(mutex_);
    if (priorities_.contains(priority)) return {};
  }
  const json object = {
      {"apiVersion", "scheduling.k8s.io/v1"},
      {"kind", "PriorityClass"},
      {"metadata", {{"name", name}, {"labels", {{"app.kubernetes.io/managed-by", "drover"}}}}},
      {"value", priority},
      {"description", "Tasks of Drover that ask for this priority"}};
  const auto made = api_.create({kPriorityClasses}, object);
  if (!made && made.error().kind != ErrorKind::kConflict) return Failure(made.error());
  const std::lock_guard lock(mutex_);
  priorities_.insert(priority);
  return {};
}

Result<std::optional<json>> PodStore::look(const kube::ObjectPath& path) {
  return there(api_.get(path));
}

Result<std::optional<json>> PodStore::remove(const kube::ObjectPath& path, const std::string& uid,
                                             bool at_once) {
  json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (at_once) options["gracePeriodSeconds"] = kAtOnce;
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  return there(api_.send(
      {.verb = "delete", .path = path, .content_type = "application/json", .body = options.dump()}));
}

Status PodStore::release(const PodView& pod) {
  const auto path = path_of(pod);
  if (!pod.leaving) {
    const auto left = remove(path, pod.uid, true);
    if (!left && left.error().kind != ErrorKind::kConflict) return Failure(left.error());
    if (!left || !*left) return {};
  }
  if (!pod.held) return {};
  const auto answer = api_.patch(
      path, kube::PatchType::kStrategic,
      {{"metadata", {{"uid", pod.uid}, {"$deleteFromPrimitiveList/finalizers", json::array({kFinalizer})}}}});
  // Another has its name by now, or none: then it is gone.
  if (answer || answer.error().kind == ErrorKind::kNotFound || answer.error().kind == ErrorKind::kConflict)
    return {};
  return Failure(answer.error());
}

}  // namespace drover::pods
