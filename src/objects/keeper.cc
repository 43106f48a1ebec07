#include "objects/keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "objects/kinds.h"

namespace drover::objects {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kNever = std::chrono::hours(24 * 365);

std::string entry_key(Kind kind, const Definition& definition) {
  return fmt::format("{} {}/{}", kind_name(kind), definition.path.name_space, definition.path.name);
}

/// What matters is what somebody wants: the status and the finalizer are ours.
bool wants_the_same(const Definition& a, const Definition& b) {
  const auto generation = [](const Definition& one) {
    return one.meta["metadata"].value("generation", json());
  };
  return a.uid == b.uid && a.deleting == b.deleting && generation(a) == generation(b);
}

}  // namespace

Keeper::Keeper(kube::Api& api, KeeperOptions options)
    : api_(api), options_(std::move(options)), events_(api, {.component = "drover", .host = ""}) {
  for (const auto kind : {Kind::kApp, Kind::kSchedule, Kind::kJob}) {
    const auto at = static_cast<std::size_t>(kind);
    static const std::array kResources = {kApps, kSchedules, kJobs};
    informers_.at(at) = std::make_unique<kube::Informer<Definition>>(
        api_, kube::InformerOptions<Definition>{
                  .selection = {.resource = kResources.at(at)},
                  .read = [kind](const json& object) -> Result<Definition> {
                    return read_definition(kind, object);
                  },
                  .on_change = [this, kind](const auto& change) { changed(kind, change); },
                  .on_trouble = [log = options_.log](const Error& error) { log(to_string(error)); }});
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Keeper::changed(Kind kind, const kube::Change<Definition>& change) {
  const auto& one = change.now ? *change.now : *change.before;
  const auto key = entry_key(kind, one);
  const std::lock_guard lock(mutex_);
  const auto forget_thing = [&](const std::string& id) {
    const auto [begin, end] = things_.equal_range(thing(kind, id));
    const auto found = std::find_if(begin, end, [&](const auto& each) { return each.second == key; });
    if (found != end) things_.erase(found);
  };
  if (const auto known = entries_.find(key); known != entries_.end())
    forget_thing(known->second.definition->id);
  if (!change.now) {
    entries_.erase(key);
    return;
  }
  things_.emplace(thing(kind, one.id), key);
  auto& entry = entries_[key];
  const bool news = !entry.definition || !wants_the_same(*entry.definition, one);
  entry.definition = change.now;
  if (!news) return;
  entry.due = std::max(Clock::now(), entry.not_before);
  news_ = true;
  changed_.notify_all();
}

void Keeper::touch(const std::string& thing) {
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = things_.equal_range(thing);
  for (auto each = begin; each != end; ++each) {
    auto& entry = entries_.at(each->second);
    entry.due = std::min(entry.due, std::max(Clock::now(), entry.not_before));
    news_ = true;
  }
  if (begin != end) changed_.notify_all();
}

Keeper::Entries::iterator Keeper::first_due() {
  return std::ranges::min_element(entries_, {}, [](const auto& each) { return each.second.due; });
}

void Keeper::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto first = first_due();
    const auto due = first == entries_.end() ? Clock::now() + kNever : first->second.due;
    if (due > Clock::now()) {
      changed_.wait_until(lock, stop, due, [this] { return std::exchange(news_, false); });
      continue;
    }
    const auto key = first->first;
    const auto taken = first->second.definition;
    first->second.due = Clock::now() + kNever;
    lock.unlock();
    auto definition = *taken;
    Result<milliseconds> next = options_.again;
    try {
      next = look(definition, stop);
    } catch (const json::exception& error) {
      next = fail(ErrorKind::kInternal, error.what());
    }
    if (stop.stop_requested()) return;
    note(next ? Status() : Failure(context(next.error(), describe(definition.path))));
    lock.lock();
    const auto found = entries_.find(key);
    if (found == entries_.end()) continue;
    auto& entry = found->second;
    entry.not_before = Clock::now() + options_.between;
    entry.due = std::max(std::min(entry.due, Clock::now() + next.value_or(options_.again)), entry.not_before);
    if (entry.definition == taken)
      entry.definition = std::make_shared<const Definition>(std::move(definition));
  }
}

void Keeper::note(const Status& done) {
  auto text = done ? "" : to_string(done.error());
  if (!text.empty() && text != trouble_) options_.log(text);
  if (!text.empty()) trouble_ = std::move(text);
}

Result<milliseconds> Keeper::look(Definition& definition, const std::stop_token& stop) {
  const auto user = options_.user_of(definition.path.name_space);
  if (!user && user.error().kind != ErrorKind::kNotFound) return Failure(user.error());
  Known known;
  Decision decision;
  if (user) {
    DROVER_TRY(known, ask_known(*user, definition, stop));
    decision = decide(definition, known);
  } else {
    decision.refusal = Refusal{"NoSuchUser", to_string(user.error())};
    if (definition.deleting && definition.held) decision.deed = Deed::kRelease;
  }
  if (decision.deed == Deed::kRelease) {
    DROVER_CHECK_OK(set_held(definition, false));
    return kNever;
  }
  if (decision.deed == Deed::kCreate || decision.deed == Deed::kChange) {
    DROVER_TRY(decision.refusal, carry_out(*user, definition, decision.deed, stop));
    if (!decision.refusal) {
      DROVER_TRY(known, ask_known(*user, definition, stop));
    }
  }
  if (decision.deed == Deed::kRemove) {
    for (const auto& call : withdraw(definition, known)) {
      DROVER_TRY(const auto answer, options_.ask(*user, call, stop));
      DROVER_TRY(decision.refusal, read_refusal(answer));
    }
  }
  // What came back from a backup, or outlived an uninstalled daemon, has lost it.
  if (known.ours && !definition.held && !definition.deleting) DROVER_CHECK_OK(set_held(definition, true));
  DROVER_CHECK_OK(write(definition, known, decision.refusal));
  if (decision.deed == Deed::kRemove) return options_.between;
  const auto phase = kube::text_at(definition.meta, "/status/phase");
  if (is_end(phase)) return kNever;
  return phase == "Queued" ? options_.again : options_.look_again;
}

Result<Known> Keeper::ask_known(const User& user, const Definition& definition, const std::stop_token& stop) {
  DROVER_TRY(const auto answer, options_.ask(user, ask_for(definition), stop));
  return read_known(definition, answer);
}

Result<std::optional<Refusal>> Keeper::carry_out(const User& user, Definition& definition, Deed deed,
                                                 const std::stop_token& stop) {
  DROVER_TRY(const auto object, api_.get(definition.path));
  auto fresh = read_definition(definition.kind, object);
  if (fresh.uid != definition.uid || fresh.id != definition.id || fresh.deleting)
    return fail(ErrorKind::kConflict, "It has just become another");
  definition = std::move(fresh);
  if (!definition.held) DROVER_CHECK_OK(set_held(definition, true));
  const auto call = submit(definition, object.value("spec", json::object()), deed == Deed::kCreate);
  DROVER_TRY(const auto answer, options_.ask(user, call, stop));
  return read_refusal(answer);
}

Status Keeper::set_held(Definition& definition, bool held) {
  auto& metadata = definition.meta["metadata"];
  auto finalizers = metadata.value("finalizers", json::array());
  std::erase(finalizers.get_ref<json::array_t&>(), json(kFinalizer));
  if (held) finalizers.push_back(kFinalizer);
  const json patch = {{"metadata",
                       {{"finalizers", finalizers},
                        {"uid", definition.uid},
                        {"resourceVersion", metadata.value("resourceVersion", json())}}}};
  const auto written = api_.patch(definition.path, kube::PatchType::kMerge, patch);
  if (!written && written.error().kind == ErrorKind::kNotFound && !held) return {};
  if (!written) return Failure(written.error());
  auto status = std::move(definition.meta["status"]);
  definition = read_definition(definition.kind, *written);
  definition.meta["status"] = std::move(status);
  return {};
}

Status Keeper::write(Definition& definition, const Known& known, const std::optional<Refusal>& refusal) {
  auto status = status_of(definition, known, refusal, wall_clock());
  auto patch = status_patch(definition, status);
  if (!patch) return {};
  (*patch)["metadata"] = {{"uid", definition.uid}};
  auto path = definition.path;
  path.subresource = "status";
  const auto written = api_.patch(path, kube::PatchType::kMerge, *patch);
  if (!written) return written.error().kind == ErrorKind::kNotFound ? Status() : Failure(written.error());
  const kube::EventTarget target{kube::api_version(definition.path.resource),
                                 std::string(kind_name(definition.kind)), definition.path.name_space,
                                 definition.path.name, definition.uid};
  for (const auto& text : events_of(definition, status)) events_.record(target, text);
  definition.meta["status"] = std::move(status);
  return {};
}

}  // namespace drover::objects
