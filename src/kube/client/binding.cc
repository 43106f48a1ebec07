#include "kube/client/binding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"

namespace drover::kube {
namespace {

using nlohmann::json;

json body_of(const Binding& binding) {
  json metadata = {{"name", binding.pod}, {"namespace", binding.name_space}, {"uid", binding.uid}};
  if (!binding.resource_version.empty()) metadata["resourceVersion"] = binding.resource_version;
  if (!binding.annotations.empty()) metadata["annotations"] = binding.annotations;
  return {{"apiVersion", "v1"},
          {"kind", "Binding"},
          {"metadata", metadata},
          {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", binding.node}}}};
}

bool is_bound_so(const json& pod, const Binding& binding) {
  return text_at(pod, "/metadata/uid") == binding.uid && text_at(pod, "/spec/nodeName") == binding.node &&
         std::ranges::all_of(binding.annotations, [&](const auto& annotation) {
           return text_at(pod, "/metadata/annotations/" + pointer_token(annotation.first)) ==
                  annotation.second;
         });
}

}  // namespace

Status bind(Api& api, const Binding& binding, const std::stop_token& stop) {
  const ObjectPath pod = {kPods, binding.name_space, binding.pod};
  auto path = pod;
  path.subresource = "binding";
  const auto bound = api.send({.verb = "create",
                               .path = path,
                               .content_type = "application/json",
                               .body = to_text(body_of(binding)),
                               .repeatable = true,
                               .answer = false},
                              stop);
  if (bound) return {};
  if (bound.error().kind != ErrorKind::kConflict) return Failure(bound.error());
  // It may be our own, of which the answer was lost.
  const auto found = api.send({.verb = "get", .path = pod}, stop);
  if (!found && found.error().kind != ErrorKind::kNotFound) return Failure(found.error());
  if (found && is_bound_so(*found, binding)) return {};
  return Failure(bound.error());
}

}  // namespace drover::kube
