#include "kube/scheduling/planned_pods.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_text.h"
#include "kube/scheduling/claim_writer.h"

namespace drover::kube {
namespace {

using nlohmann::json;

const Resource kClaimTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates"};

Status check_kind(const json& pod) {
  const auto kind = pod.is_object() ? text_at(pod, "/kind") : "";
  if (kind == "Pod" && text_at(pod, "/apiVersion") == "v1") return {};
  return fail(ErrorKind::kInvalid,
              kind.empty() ? "What is to be planned is no object of Kubernetes"
                           : fmt::format("A {} cannot be planned", kind),
              "write Pods (apiVersion: v1), such as those that it makes");
}

/// As it would stand there.
Result<json> as_made(Api& api, json pod, const std::string& name_space) {
  DROVER_CHECK_OK(check_kind(pod));
  auto& metadata = pod["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  if (text_at(pod, "/metadata/namespace").empty()) metadata["namespace"] = name_space;
  if (text_at(pod, "/metadata/name").empty() && text_at(pod, "/metadata/generateName").empty())
    metadata["generateName"] = "planned-";
  auto made = api.send({.verb = "create",
                        .path = {kPods, text_at(pod, "/metadata/namespace")},
                        .query = {{"dryRun", "All"}},
                        .content_type = "application/json",
                        .body = to_text(pod),
                        .repeatable = true});
  if (!made && made.error().kind == ErrorKind::kConflict)
    made.error().hint = "'drover explain --pod' says how it stands with a pod that is there";
  return made;
}

class ClaimPlanner {
 public:
  ClaimPlanner(Api& api, scheduler::Scheduler& to) : api_(api), to_(to) {}

  /// Those that are made of templates; the pod is told of them.
  Status add_claims(json& pod) {
    const auto entries = pod.value("/spec/resourceClaims"_json_pointer, json::array());
    for (const auto& entry : entries) {
      const auto name = text_at(entry, "/resourceClaimTemplateName");
      if (name.empty()) continue;
      const auto name_space = text_at(pod, "/metadata/namespace");
      DROVER_TRY(const auto of, api_.get({kClaimTemplates, name_space, name}));
      const auto uid = text_at(pod, "/metadata/uid");
      const auto made = fmt::format("{}-{}", uid, text_at(entry, "/name"));
      const json claim{{"metadata",
                        {{"name", made},
                         {"namespace", name_space},
                         {"uid", made},
                         {"ownerReferences",
                          {{{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"uid", uid},
                            {"name", text_at(pod, "/metadata/name")},
                            {"controller", true}}}}}},
                       {"spec", of.value("/spec/spec"_json_pointer, json::object())}};
      DROVER_TRY(auto read, scheduler::read_resource_claim(claim));
      to_.put_claim(std::move(read));
      pod["status"]["resourceClaimStatuses"].push_back(
          {{"name", text_at(entry, "/name")}, {"resourceClaimName", made}});
    }
    return {};
  }

 private:
  Api& api_;
  scheduler::Scheduler& to_;
};

}  // namespace

Result<std::vector<std::string>> plan_pods(Api& api, const std::vector<json>& pods,
                                           const std::string& name_space, const ServerVersion& version,
                                           scheduler::Scheduler& to) {
  std::vector<std::string> uids;
  for (const auto& pod : pods) {
    DROVER_TRY(auto made, as_made(api, pod, name_space));
    DROVER_CHECK_OK(ClaimPlanner(api, to).add_claims(made));
    DROVER_TRY(auto read, scheduler::read_pod_object(made, version));
    uids.push_back(read.pod.uid);
    to.put_pod(std::move(read));
  }
  return uids;
}

}  // namespace drover::kube
