#include "objects/release.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "objects/definition.h"

namespace drover::objects {
namespace {

using nlohmann::json;

Status release(kube::Api& api, const kube::ObjectPath& path, const json& metadata) {
  auto finalizers = metadata.value("finalizers", json::array());
  if (std::erase(finalizers.get_ref<json::array_t&>(), json(kFinalizer)) == 0) return {};
  const json patch = {{"metadata",
                       {{"finalizers", std::move(finalizers)},
                        {"resourceVersion", metadata.value("resourceVersion", json())}}}};
  const auto done = api.patch(path, kube::PatchType::kMerge, patch);
  return done || done.error().kind == ErrorKind::kNotFound ? Status() : Failure(done.error());
}

}  // namespace

Status release_definitions(kube::Api& api) {
  for (const auto& resource : {kApps, kSchedules, kJobs}) {
    const auto list = api.list({.resource = resource});
    if (!list && list.error().kind != ErrorKind::kNotFound &&
        list.error().kind != ErrorKind::kPermissionDenied)
      return Failure(list.error());
    if (!list) continue;
    for (const auto& object : list->items)
      DROVER_CHECK_OK(release(
          api,
          {resource, kube::text_at(*object, "/metadata/namespace"), kube::text_at(*object, "/metadata/name")},
          object->at("metadata")));
  }
  return {};
}

}  // namespace drover::objects
