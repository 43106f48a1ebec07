#include "kube/client/testing/fake_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/units.h"

namespace drover::kube::testing {
namespace {

using nlohmann::json;

std::string fake_key(const ObjectPath& path) {
  return path.name_space.empty() ? path.name : path.name_space + "/" + path.name;
}

/// "spec.nodeName=a" and "app=x,!y" of labels, as far as they say what is equal.
bool fits(const json& object, const std::string& selector, bool labels) {
  std::istringstream parts(selector);
  for (std::string part; std::getline(parts, part, ',');) {
    auto name = part.substr(0, part.find('='));
    const auto value = part.substr(part.rfind('=') + 1);
    json found;
    if (labels) {
      found = object.value("/metadata/labels"_json_pointer, json::object()).value(name, json());
    } else {
      std::ranges::replace(name, '.', '/');
      found = object.value(json::json_pointer("/" + name), json());
    }
    if (found != value) return false;
  }
  return true;
}

bool fits(const json& object, const Selection& selection) {
  const auto& name_space = selection.name_space;
  return object.is_object() && (name_space.empty() || text_at(object, "/metadata/namespace") == name_space) &&
         fits(object, selection.label_selector, true) && fits(object, selection.field_selector, false);
}

/// Whether it stays when it is deleted.
bool is_held(const json& object) {
  return !object.value("/metadata/finalizers"_json_pointer, json::array()).empty();
}

/// It is to go after the time that the request gives it, or that its own spec does. Who is to go already gets
/// no more, but may get less.
void begin_deletion(json& object, const std::string& options) {
  const auto asked = options.empty() ? json() : json::parse(options).value("gracePeriodSeconds", json());
  auto& metadata = object["metadata"];
  const int known = metadata.value("deletionGracePeriodSeconds", 0);
  const auto own = object.value("/spec/terminationGracePeriodSeconds"_json_pointer, 0);
  const int grace = asked.is_number_integer() ? asked.get<int>() : own;
  auto end = std::chrono::floor<std::chrono::seconds>(wall_clock());
  if (metadata.contains("deletionTimestamp")) {
    if (!asked.is_number_integer() || grace >= known) return;
    end = std::chrono::floor<std::chrono::seconds>(
              parse_time(text_at(object, "/metadata/deletionTimestamp")).value()) -
          std::chrono::seconds(known);
  }
  metadata["deletionTimestamp"] = format_time(end + std::chrono::seconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
}

/// By which field the items of a list are told apart; nullptr: they are not.
const char* key_of_items(const json& list) {
  if (!list.is_array() || list.empty() || !list[0].is_object()) return nullptr;
  for (const auto* const key : {"type", "name"})
    if (list[0].contains(key)) return key;
  return nullptr;
}

/// As a strategic merge patch does with lists whose items are known by their type, as conditions are, or by
/// their name.
void merge(json& object, const json& patch) {
  constexpr std::string_view kTakeOut = "$deleteFromPrimitiveList/";
  for (const auto& [name, value] : patch.items()) {
    if (name.starts_with(kTakeOut)) {
      const auto list = object.find(name.substr(kTakeOut.size()));
      for (const auto& gone : value)
        if (list != object.end()) list->erase(std::remove(list->begin(), list->end(), gone), list->end());
      continue;
    }
    auto& field = object[name];
    if (value.is_object() && field.is_object()) {
      merge(field, value);
    } else if (const auto* const key = key_of_items(value); key != nullptr && field.is_array()) {
      for (const auto& item : value) {
        const auto known =
            std::ranges::find_if(field, [&](const json& old) { return old[key] == item[key]; });
        if (item.value("$patch", "") == "delete") {
          if (known != field.end()) field.erase(known);
        } else if (known == field.end()) {
          field.push_back(item);
        } else {
          merge(*known, item);
        }
      }
    } else if (value.is_null()) {
      object.erase(name);
    } else {
      field = value;
    }
  }
}

/// Removes what stands in `before` and not in `now`.
void remove_vanished(json& object, const json& before, const json& now) {
  for (const auto& [name, value] : before.items()) {
    if (!object.is_object() || !object.contains(name)) continue;
    if (value.is_object() && object[name].is_object())
      remove_vanished(object[name], value,
                      now.is_object() ? now.value(name, json::object()) : json::object());
    else if (!now.contains(name))
      object.erase(name);
  }
}

Failure refused(ErrorKind kind, const ApiRequest& request, const std::string& why) {
  return fail(kind, fmt::format("Failed to {} {}: {}", request.verb, describe(request.path), why));
}

}  // namespace

Result<json> FakeApi::send(const ApiRequest& request, const std::stop_token&, const TakeItem& take) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(request);
  if (!failures_.empty()) {
    auto error = std::move(failures_.front());
    failures_.pop_front();
    return Failure(std::move(error));
  }
  auto result = answer(request);
  changed_.notify_all();
  if (take && result && result->contains("items"))
    for (auto items = std::exchange((*result)["items"], json::array()); auto& item : items) take(item);
  return result;
}

Result<json> FakeApi::answer(const ApiRequest& request) {
  if (request.verb == "list") return show(request);
  if (const auto& resource = request.path.resource; resource.plural.empty()) {
    const auto served = served_.find(api_version(resource));
    if (served == served_.end()) return refused(ErrorKind::kNotFound, request, "not found");
    return json{{"kind", "APIResourceList"}, {"resources", served->second}};
  }
  auto& objects = objects_of(request.path.resource);
  const auto& subresource = request.path.subresource;
  if (request.verb == "create" && subresource.empty()) return make(request, json::parse(request.body));
  const auto found = objects.find(fake_key(request.path));
  const bool applied = request.query.contains("fieldManager");
  if (found == objects.end() && !applied) return refused(ErrorKind::kNotFound, request, "not found");
  if (request.verb == "create" && subresource == "binding") return bind(request, found->second);
  if (request.verb == "create") return refused(ErrorKind::kNotFound, request, "no such subresource");
  if (request.verb == "get") return found->second;
  if (request.verb == "delete") {
    if (!request.body.empty()) {
      const auto uid = text_at(json::parse(request.body), "/preconditions/uid");
      if (!uid.empty() && uid != text_at(found->second, "/metadata/uid"))
        return refused(ErrorKind::kConflict, request, "the uid is another");
    }
    if (honours_finalizers_ && is_held(found->second)) {
      auto now = found->second;
      begin_deletion(now, request.body);
      keep(request, found->second, std::move(now));
      return found->second;
    }
    auto gone = found->second;
    keep(request, found->second, nullptr);
    objects.erase(found);
    return gone;
  }
  if (found != objects.end()) {
    DROVER_TRY(auto now, change(request, found->second));
    if (honours_finalizers_ && !text_at(now, "/metadata/deletionTimestamp").empty() && !is_held(now)) {
      keep(request, found->second, nullptr);
      objects.erase(found);
    }
    return now;
  }
  auto object = json::parse(request.body);
  last_applied_[url_path(request.path) + "?" + request.query.at("fieldManager")] = object;
  return make(request, std::move(object));
}

Result<json> FakeApi::make(const ApiRequest& request, json object) {
  auto& metadata = object["metadata"];
  if (!request.path.name_space.empty()) metadata["namespace"] = request.path.name_space;
  if (!metadata.contains("name"))
    metadata["name"] = metadata.value("generateName", "") + std::to_string(version_);
  metadata["uid"] = fmt::format("{:08x}-0000-4000-8000-000000000000", version_);
  auto& objects = objects_of(request.path.resource);
  const auto key = key_of(object);
  if (objects.contains(key)) return refused(ErrorKind::kConflict, request, key + " already exists");
  if (request.query.contains("dryRun")) {
    ++version_;
    return object;
  }
  auto& kept = objects[key];
  keep(request, kept, std::move(object));
  return kept;
}

Result<json> FakeApi::bind(const ApiRequest& request, json& pod) {
  const auto body = json::parse(request.body);
  for (const auto* const field : {"/metadata/uid", "/metadata/resourceVersion"})
    if (const auto seen = text_at(body, field); !seen.empty() && seen != text_at(pod, field))
      return refused(ErrorKind::kConflict, request, fmt::format("Precondition failed: {}", field));
  if (pod.contains("/metadata/deletionTimestamp"_json_pointer))
    return refused(ErrorKind::kConflict, request, "the pod is being deleted");
  if (const auto node = text_at(pod, "/spec/nodeName"); !node.empty())
    return refused(ErrorKind::kConflict, request, "the pod is already assigned to node " + node);
  if (!pod.value("/spec/schedulingGates"_json_pointer, json::array()).empty())
    return refused(ErrorKind::kConflict, request, "the pod has non-empty .spec.schedulingGates");
  auto now = pod;
  now["spec"]["nodeName"] = text_at(body, "/target/name");
  const auto annotations = body.value("/metadata/annotations"_json_pointer, json::object());
  if (!annotations.empty()) now["metadata"]["annotations"].update(annotations);
  const auto since = format_time(std::chrono::floor<std::chrono::seconds>(wall_clock()));
  now["status"]["conditions"] =
      json::array({json{{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", since}}});
  keep(request, pod, std::move(now));
  return json{{"kind", "Status"}, {"status", "Success"}};
}

Result<json> FakeApi::change(const ApiRequest& request, json& object) {
  const auto body = json::parse(request.body);
  auto now = object;
  if (request.verb == "update") {
    const auto seen = text_at(body, "/metadata/resourceVersion");
    if (!seen.empty() && seen != text_at(object, "/metadata/resourceVersion"))
      return refused(ErrorKind::kConflict, request, "the object has been modified");
    now = body;
    now["metadata"]["uid"] = object["metadata"]["uid"];
  } else if (request.query.contains("fieldManager")) {
    auto& last = last_applied_[url_path(request.path) + "?" + request.query.at("fieldManager")];
    if (last.is_object()) remove_vanished(now, last, body);
    merge(now, body);
    last = body;
  } else {
    for (const auto* const field : {"/metadata/uid", "/metadata/resourceVersion"})
      if (const auto seen = text_at(body, field); !seen.empty() && seen != text_at(object, field))
        return refused(ErrorKind::kConflict, request, fmt::format("Precondition failed: {}", field));
    if (request.content_type == "application/strategic-merge-patch+json")
      merge(now, body);
    else
      now.merge_patch(body);
  }
  if (const auto& part = request.path.subresource; !part.empty()) {
    auto whole = object;
    whole[part] = now.value(part, json());
    now = std::move(whole);
  }
  if (now != object) keep(request, object, std::move(now));
  return object;
}

json FakeApi::show(const ApiRequest& request) {
  const auto selector = [&](const char* name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? "" : found->second;
  };
  const Selection selection = {request.path.resource, request.path.name_space, selector("labelSelector"),
                               selector("fieldSelector")};
  auto items = json::array();
  for (const auto& [key, object] : objects_of(request.path.resource))
    if (fits(object, selection)) items.push_back(object);
  return {{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", items}};
}

void FakeApi::keep(const ApiRequest& request, json& object, json now) {
  auto before = object;
  ++version_;
  auto& versioned = now.is_null() ? before : now;
  versioned["metadata"]["resourceVersion"] = std::to_string(version_);
  history_.push_back({request.path.resource, std::move(before), now, version_});
  object = std::move(now);
}

Status FakeApi::watch(const WatchRequest& request, const TakeEvent& take, const std::stop_token& stop) {
  const auto& resource = request.selection.resource;
  std::unique_lock lock(mutex_);
  ++watches_;
  changed_.notify_all();
  const int ended = ended_;
  auto seen = std::stoull(request.resource_version);
  const auto is_news = [&](const Past& past) { return past.version > seen && past.resource == resource; };
  while (!stop.stop_requested()) {
    if (seen < forgotten_)
      return fail(ErrorKind::kNotFound,
                  fmt::format("Failed to watch {}: too old resource version", resource.plural));
    const auto news = std::ranges::find_if(history_, is_news);
    if (news == history_.end()) {
      if (ended != ended_) return {};
      changed_.wait(lock, stop, [&] {
        return ended != ended_ || seen < forgotten_ || std::ranges::any_of(history_, is_news);
      });
      continue;
    }
    seen = news->version;
    const bool was = fits(news->before, request.selection);
    const bool is = fits(news->now, request.selection);
    if (!was && !is) continue;
    const auto type = !was ? WatchEventType::kAdded
                      : is ? WatchEventType::kModified
                           : WatchEventType::kDeleted;
    const WatchEvent event{type, std::make_shared<const json>(is ? news->now : news->before)};
    lock.unlock();
    DROVER_CHECK_OK(take(event));
    lock.lock();
  }
  return fail(ErrorKind::kUnavailable, "it was stopped");
}

Status FakeApi::read(const ApiRequest& request, const TakeText& take, const std::stop_token&) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    const auto found = texts_.find(url_path(request.path));
    if (found == texts_.end()) return refused(ErrorKind::kNotFound, request, "not found");
    text = found->second;
  }
  return take(text);
}

void FakeApi::set_text(const ObjectPath& path, std::string text) {
  const std::lock_guard lock(mutex_);
  texts_[url_path(path)] = std::move(text);
}

void FakeApi::fail_next(std::vector<Error> errors) {
  const std::lock_guard lock(mutex_);
  std::ranges::move(errors, std::back_inserter(failures_));
}

void FakeApi::recover() {
  const std::lock_guard lock(mutex_);
  failures_.clear();
}

void FakeApi::honour_finalizers() {
  const std::lock_guard lock(mutex_);
  honours_finalizers_ = true;
}

void FakeApi::serve(const Resource& resource) {
  const std::lock_guard lock(mutex_);
  served_[api_version(resource)].push_back({{"name", resource.plural}});
}

void FakeApi::end_watches() {
  const std::lock_guard lock(mutex_);
  ++ended_;
  changed_.notify_all();
}

void FakeApi::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = ++version_;
  history_.clear();
  changed_.notify_all();
}

std::vector<ApiRequest> FakeApi::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int FakeApi::watches() const {
  const std::lock_guard lock(mutex_);
  return watches_;
}

FakeApi::Objects& FakeApi::objects_of(const Resource& resource) {
  return objects_[resource.group + "/" + resource.plural];
}

}  // namespace drover::kube::testing
