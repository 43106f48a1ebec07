#include "kube/client/api.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace drover::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kPage = 500;
constexpr std::size_t kMostObjects = 1'000'000;

/// What is wrong with a page, when not all of its items could be handed out.
Status check_page(const json& page, const std::string& what) {
  const auto items = page.find("items");
  if (items == page.end() || items->is_array() || items->is_null()) return {};
  return fail(ErrorKind::kUnavailable,
              fmt::format("Failed to list {}: the answer's items are no list", what));
}

ApiRequest replacing(const ObjectPath& path, const json& object) {
  return {.verb = "update",
          .path = path,
          .content_type = "application/json",
          .body = to_text(object),
          .managed_fields = false};
}

ApiRequest patching(const ObjectPath& path, PatchType type, const json& patch) {
  const bool strategic = type == PatchType::kStrategic;
  return {
      .verb = "patch",
      .path = path,
      .content_type = strategic ? "application/strategic-merge-patch+json" : "application/merge-patch+json",
      .body = to_text(patch),
      .managed_fields = false};
}

}  // namespace

Result<json> Api::get(const ObjectPath& path) {
  return send({.verb = "get", .path = path});
}

Result<json> Api::create(const ObjectPath& collection, const json& object) {
  return send({.verb = "create",
               .path = collection,
               .content_type = "application/json",
               .body = to_text(object),
               .managed_fields = false});
}

Result<json> Api::replace(const ObjectPath& path, const json& object) {
  return send(replacing(path, object));
}

Result<json> Api::patch(const ObjectPath& path, PatchType type, const json& patch) {
  return send(patching(path, type, patch));
}

Status Api::write(const ObjectPath& path, const json& object) {
  auto request = replacing(path, object);
  request.answer = false;
  return send(request).map([](auto&&) {});
}

Status Api::write(const ObjectPath& path, PatchType type, const json& patch) {
  auto request = patching(path, type, patch);
  request.answer = false;
  return send(request).map([](auto&&) {});
}

Result<json> Api::apply(const ObjectPath& path, const json& object, const std::string& field_manager) {
  // JSON is YAML, and this is the type that all versions know.
  return send({.verb = "patch",
               .path = path,
               .query = {{"fieldManager", field_manager}, {"force", "true"}},
               .content_type = "application/apply-patch+yaml",
               .body = to_text(object)});
}

Status Api::read(const ApiRequest& request, const TakeText&, const std::stop_token&) {
  return fail(ErrorKind::kUnsupported, fmt::format("No texts are read here: {}", describe(request.path)));
}

Status Api::remove(const ObjectPath& path, const std::string& uid) {
  ApiRequest request{.verb = "delete", .path = path};
  if (!uid.empty()) {
    request.content_type = "application/json";
    request.body =
        json{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}}.dump();
  }
  const auto answer = send(request);
  if (!answer && answer.error().kind != ErrorKind::kNotFound) return Failure(answer.error());
  return {};
}

Result<ObjectList> Api::list(const Selection& selection, const std::stop_token& stop) {
  ObjectList list;
  const ListListener listener = {
      .begin = [&] { list.items.clear(); },
      .take = [&](json& item) { list.items.push_back(std::make_shared<const json>(std::move(item))); }};
  DROVER_TRY(list.resource_version, list_each(selection, listener, stop));
  return list;
}

Result<std::string> Api::list_each(const Selection& selection, const ListListener& listener,
                                   const std::stop_token& stop) {
  ApiRequest request{.verb = "list",
                     .path = {selection.resource, selection.name_space},
                     .managed_fields = selection.managed_fields};
  request.query["limit"] = std::to_string(kPage);
  if (!selection.label_selector.empty()) request.query["labelSelector"] = selection.label_selector;
  if (!selection.field_selector.empty()) request.query["fieldSelector"] = selection.field_selector;
  const auto what = describe(request.path);
  std::size_t count = 0;
  Status taken;
  const auto take = [&](json& item) {
    if (taken && key_of(item).empty())
      taken = fail(ErrorKind::kUnavailable, fmt::format("Failed to list {}: an object has no name", what));
    if (taken && ++count > kMostObjects)
      taken = fail(ErrorKind::kExhausted,
                   fmt::format("Failed to list {}: there are more than {}", what, kMostObjects));
    if (taken) listener.take(item);
  };
  listener.begin();
  for (bool began_anew = false;;) {
    const auto page = send(request, stop, take);
    DROVER_CHECK_OK(taken);
    const bool expired = !page && page.error().kind == ErrorKind::kNotFound;
    if (expired && request.query.contains("continue") && !began_anew) {
      // It took so long that the server has forgotten what the first page was like.
      began_anew = true;
      request.query.erase("continue");
      request.query.erase("limit");
      count = 0;
      listener.begin();
      continue;
    }
    if (!page) return Failure(page.error());
    DROVER_CHECK_OK(check_page(*page, what));
    const auto next = text_at(*page, "/metadata/continue");
    if (next.empty()) return text_at(*page, "/metadata/resourceVersion");
    request.query["continue"] = next;
  }
}

}  // namespace drover::kube
