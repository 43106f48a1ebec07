#include "kube/client/informer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"

namespace drover::kube {

Informer::Informer(Api& api, InformerOptions options)
    : api_(api), options_(std::move(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Informer::~Informer() = default;

Status Informer::wait_until_listed(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, patience, [this] { return listed_; })) return {};
  if (trouble_) return fail(ErrorKind::kTimeout, trouble_->message, trouble_->hint);
  return fail(ErrorKind::kTimeout,
              fmt::format("the API server did not list {} within {}", options_.selection.resource.plural,
                          format_duration(patience)));
}

std::map<std::string, Object> Informer::objects() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

Object Informer::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

void Informer::run(const std::stop_token& stop) {
  Backoff backoff(options_.first_pause, options_.longest_pause, options_.seed);
  do {
    const auto begin = std::chrono::steady_clock::now();
    const auto useful = follow(stop);
    if (stop.stop_requested()) return;
    note(useful ? Status() : Failure(useful.error()));
    const bool long_enough = std::chrono::steady_clock::now() - begin > options_.longest_pause;
    if (useful.value_or(false) || long_enough) backoff.reset();
  } while (pause(backoff.next(), stop));
}

Result<bool> Informer::follow(const std::stop_token& stop) {
  if (version_.empty()) {
    DROVER_TRY(const auto list, api_.list(options_.selection, stop));
    take_all(list);
    version_ = list.resource_version;
    note({});
  }
  bool useful = false;
  const auto ended = api_.watch(
      {options_.selection, version_},
      [&](const WatchEvent& event) -> Status {
        useful = true;
        take(event);
        return {};
      },
      stop);
  if (ended) return useful;
  if (ended.error().kind != ErrorKind::kNotFound) return Failure(ended.error());
  version_.clear();  // it is too old: nothing has gone wrong
  return useful;
}

void Informer::take_all(const ObjectList& list) {
  std::map<std::string, Object> objects;
  for (const auto& object : list.items) objects[key_of(*object)] = object;
  std::map<std::string, Change> changes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, object] : objects_) changes[key].before = object;
    for (const auto& [key, object] : objects) changes[key].now = object;
    objects_ = std::move(objects);
    listed_ = true;
  }
  changed_.notify_all();
  for (const auto& [key, change] : changes) notify(change);
}

void Informer::take(const WatchEvent& event) {
  version_ = text_at(*event.object, "/metadata/resourceVersion");
  if (event.type == WatchEventType::kBookmark) return;
  Change change;
  {
    const std::lock_guard lock(mutex_);
    auto& object = objects_[key_of(*event.object)];
    change.before = object;
    if (event.type != WatchEventType::kDeleted) change.now = event.object;
    object = change.now;
    if (!object) objects_.erase(key_of(*event.object));
  }
  notify(change);
}

void Informer::notify(const Change& change) const {
  if (!options_.on_change || (!change.before && !change.now)) return;
  const auto version = [](const Object& object) {
    return object ? text_at(*object, "/metadata/uid") + text_at(*object, "/metadata/resourceVersion") : "";
  };
  if (version(change.before) != version(change.now)) options_.on_change(change);
}

void Informer::note(const Status& outcome) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = !outcome && (!trouble_ || trouble_->message != outcome.error().message);
    trouble_ = outcome ? std::nullopt : std::optional(outcome.error());
  }
  if (is_new && options_.on_trouble) options_.on_trouble(outcome.error());
}

}  // namespace drover::kube
