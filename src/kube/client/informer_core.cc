#include "kube/client/informer_core.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"

namespace drover::kube {

InformerCore::InformerCore(Api& api, Settings settings)
    : api_(api),
      settings_(std::move(settings)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

InformerCore::~InformerCore() = default;

Status InformerCore::wait_until_listed(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, patience, [this] { return listed_; })) return {};
  if (trouble_) return fail(ErrorKind::kTimeout, trouble_->message, trouble_->hint);
  return fail(ErrorKind::kTimeout,
              fmt::format("the API server did not list {} within {}", settings_.selection.resource.plural,
                          format_duration(patience)));
}

void InformerCore::visit(const std::function<void(const std::string&, const Made&)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_)
    if (entry.made) visit(key, entry.made);
}

InformerCore::Made InformerCore::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.made;
}

void InformerCore::run(const std::stop_token& stop) {
  Backoff backoff(settings_.first_pause, settings_.longest_pause, settings_.seed);
  do {
    const auto begin = std::chrono::steady_clock::now();
    const auto useful = follow(stop);
    if (stop.stop_requested()) return;
    note(useful ? Status() : Failure(useful.error()));
    const bool long_enough = std::chrono::steady_clock::now() - begin > settings_.longest_pause;
    if (useful.value_or(false) || long_enough) backoff.reset();
  } while (pause(backoff.next(), stop));
}

Result<bool> InformerCore::follow(const std::stop_token& stop) {
  if (version_.empty()) {
    DROVER_CHECK_OK(list(stop));
    note({});
  }
  bool useful = false;
  const auto ended = api_.watch(
      {settings_.selection, version_},
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

Status InformerCore::list(const std::stop_token& stop) {
  Entries entries;
  const ListListener listener = {.begin = [&] { entries.clear(); },
                                 .take =
                                     [&](nlohmann::json& item) {
                                       const auto object =
                                           std::make_shared<const nlohmann::json>(std::move(item));
                                       const auto key = key_of(*object);
                                       entries[key] = entry_of(key, object);
                                     }};
  DROVER_TRY(auto version, api_.list_each(settings_.selection, listener, stop));
  std::map<std::string, std::pair<Entry, Entry>> changes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) changes[key].first = entry;
    for (const auto& [key, entry] : entries) changes[key].second = entry;
    entries_ = std::move(entries);
  }
  version_ = std::move(version);
  std::erase_if(unreadable_, [&](const auto& told) { return !entries_.contains(told.first); });
  for (const auto& [key, change] : changes) notify(change.first, change.second);
  {
    const std::lock_guard lock(mutex_);
    listed_ = true;
  }
  changed_.notify_all();
  return {};
}

void InformerCore::take(const WatchEvent& event) {
  version_ = text_at(*event.object, "/metadata/resourceVersion");
  if (event.type == WatchEventType::kBookmark) return;
  const auto key = key_of(*event.object);
  Entry now;
  if (event.type == WatchEventType::kDeleted)
    unreadable_.erase(key);
  else
    now = entry_of(key, event.object);
  Entry before;
  {
    const std::lock_guard lock(mutex_);
    auto& entry = entries_[key];
    before = std::exchange(entry, now);
    if (event.type == WatchEventType::kDeleted) entries_.erase(key);
  }
  notify(before, now);
}

InformerCore::Entry InformerCore::entry_of(const std::string& key, const Object& object) {
  Entry entry{nullptr, text_at(*object, "/metadata/uid"), text_at(*object, "/metadata/resourceVersion")};
  const auto known = entries_.find(key);
  if (known != entries_.end() && known->second.uid == entry.uid && known->second.version == entry.version)
    return known->second;
  entry.made = read(key, object);
  return entry;
}

InformerCore::Made InformerCore::read(const std::string& key, const Object& object) {
  auto made = [&]() -> Result<Made> {
    try {
      return settings_.read(object);
    } catch (const nlohmann::json::exception& error) {
      return fail(ErrorKind::kInvalid, error.what());
    }
  }();
  if (made) {
    unreadable_.erase(key);
    return *made;
  }
  const auto& plural = settings_.selection.resource.plural;
  const auto error = context(made.error(), fmt::format("Failed to read {} '{}'", plural, key));
  if (std::exchange(unreadable_[key], error.message) != error.message && settings_.on_trouble)
    settings_.on_trouble(error);
  return nullptr;
}

void InformerCore::notify(const Entry& before, const Entry& now) const {
  if (!settings_.on_change || (!before.made && !now.made)) return;
  const bool is_same = before.made && now.made && before.uid == now.uid;
  if (is_same && before.version == now.version) return;
  if (is_same || !before.made || !now.made) return settings_.on_change(before.made, now.made);
  settings_.on_change(before.made, nullptr);
  settings_.on_change(nullptr, now.made);
}

void InformerCore::note(const Status& outcome) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = !outcome && (!trouble_ || trouble_->message != outcome.error().message);
    trouble_ = outcome ? std::nullopt : std::optional(outcome.error());
  }
  if (is_new && settings_.on_trouble) settings_.on_trouble(outcome.error());
}

}  // namespace drover::kube
