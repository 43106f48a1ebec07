#include "kube/scheduling/cluster_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/pause.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using scheduler::Scheduler;

constexpr auto kLongestPause = 2s;  ///< a server that is back is noticed so soon
constexpr auto kLookForApis = 30s;
constexpr auto kLookForGroups = 500ms;
constexpr auto kBetweenUses = 2s;
constexpr auto kAskAgain = 10s;
constexpr auto kAnswer = 5s;  ///< of the scheduler's own thread

}  // namespace

ClusterWatch::ClusterWatch(Api& api, SchedulingLoop& loop, const ServerVersion& version,
                           std::function<void(const std::string&)> warn)
    : api_(api), loop_(loop), warn_(std::move(warn)) {
  for (auto& kind : cluster_kinds(version, warn_)) {
    if (kind.everywhere)
      follow(kind.resource, std::move(kind.read));
    else
      not_served_.push_back(std::move(kind));
  }
  for (const auto& resource : {scheduler::kQueues, scheduler::kQuotas})
    not_served_.push_back({resource, false, {}});
  follow_if_served();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Status ClusterWatch::wait_until_listed(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto left = [&] {
    return std::max(0ms,
                    std::chrono::floor<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()));
  };
  const std::lock_guard lock(mutex_);
  for (const auto& informer : informers_) DROVER_CHECK_OK(informer->wait_until_listed(left()));
  for (const auto& informer : sharing_informers_) DROVER_CHECK_OK(informer->wait_until_listed(left()));
  return {};
}

void ClusterWatch::follow(const Resource& resource, std::function<Result<ObjectChange>(const json&)> read) {
  InformerOptions<ObjectChange> options;
  options.selection.resource = resource;
  options.read = std::move(read);
  options.on_change = [this](const Change<ObjectChange>& change) {
    loop_.change(change.now ? std::exchange(change.now->put, {}) : change.before->end);
  };
  options.longest_pause = kLongestPause;
  options.on_trouble = [this](const Error& error) { warn_(to_string(error)); };
  const std::lock_guard lock(mutex_);
  informers_.push_back(std::make_unique<Informer<ObjectChange>>(api_, std::move(options)));
}

void ClusterWatch::follow_sharing(const Resource& resource, std::map<std::string, Object>& objects) {
  InformerOptions<> options;
  options.selection.resource = resource;
  options.on_change = [this, &objects](const Change<>& change) {
    const std::lock_guard lock(sharing_mutex_);
    const auto name = text_at(change.now ? *change.now : *change.before, "/metadata/name");
    if (change.now)
      objects.insert_or_assign(name, change.now);
    else
      objects.erase(name);
    loop_.change(put_sharing(sharing_));
  };
  options.longest_pause = kLongestPause;
  options.on_trouble = [this](const Error& error) { warn_(to_string(error)); };
  const std::lock_guard lock(mutex_);
  sharing_informers_.push_back(std::make_unique<Informer<>>(api_, std::move(options)));
}

void ClusterWatch::follow_if_served() {
  std::erase_if(not_served_, [this](ClusterKind& kind) {
    if (!is_served(api_, kind.resource).value_or(false)) return false;
    if (kind.resource == scheduler::kQueues)
      follow_sharing(kind.resource, sharing_.queues);
    else if (kind.resource == scheduler::kQuotas)
      follow_sharing(kind.resource, sharing_.quotas);
    else
      follow(kind.resource, std::move(kind.read));
    return true;
  });
}

/// Objects that are seldom asked for are read one by one.
void ClusterWatch::read_absent_groups() {
  const auto found = std::make_shared<std::promise<std::vector<ObjectPath>>>();
  auto answer = found->get_future();
  loop_.change([found](Scheduler& scheduler) { found->set_value(scheduler.absent_groups()); });
  if (answer.wait_for(kAnswer) != std::future_status::ready) return;
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(asked_, [&](const auto& asked) { return now - asked.second > kAskAgain; });
  for (const auto& path : answer.get()) {
    if (!asked_.try_emplace(url_path(path), now).second) continue;
    const auto object = api_.get(path);
    if (object)
      loop_.change(put_group(path.resource, *object));
    else if (object.error().kind != ErrorKind::kNotFound)
      groups_trouble_.report(Failure(object.error()));
  }
}

/// What queues and quotas hold, where people look for it.
void ClusterWatch::write_use() {
  const auto use = loop_.use();
  if (!use) return;
  SharingObjects objects;
  {
    const std::lock_guard lock(sharing_mutex_);
    objects = sharing_;
  }
  const auto of = [](const auto& uses, const std::string& name) {
    const auto found = uses.find(name);
    return found == uses.end() ? scheduler::SharingUse{} : found->second;
  };
  std::optional<Error> trouble;
  const auto write = [&](const Resource& resource, const std::string& name,
                         const std::optional<json>& patch) {
    if (!patch) return;
    const auto done = api_.write({resource, "", name, "status"}, PatchType::kMerge, *patch);
    if (!done && done.error().kind != ErrorKind::kNotFound) trouble = done.error();
  };
  const auto now = wall_clock();
  for (const auto& [name, queue] : objects.queues)
    write(scheduler::kQueues, name,
          scheduler::queue_status(*queue, use->sharing, of(use->queues, scheduler::queue_path(name)), now));
  for (const auto& [name, quota] : objects.quotas)
    write(scheduler::kQuotas, name,
          scheduler::quota_status(*quota, use->sharing, of(use->namespaces, name), now));
  use_trouble_.report(trouble ? Failure(*trouble) : Status());
}

void ClusterWatch::run(const std::stop_token& stop) {
  auto looked = std::chrono::steady_clock::now();
  auto wrote = looked;
  while (pause(kLookForGroups, stop)) {
    read_absent_groups();
    if (std::chrono::steady_clock::now() - wrote > kBetweenUses) {
      write_use();
      wrote = std::chrono::steady_clock::now();
    }
    if (std::chrono::steady_clock::now() - looked < kLookForApis) continue;
    follow_if_served();
    looked = std::chrono::steady_clock::now();
  }
}

}  // namespace drover::kube
