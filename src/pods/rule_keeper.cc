#include "pods/rule_keeper.h"

#include <fmt/format.h>

#include "kube/scheduler/sharing/rules.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

constexpr const char* kManager = "drover";

}  // namespace

RuleKeeper::RuleKeeper(kube::Api& api, RuleKeeperOptions options)
    : api_(api), options_(std::move(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void RuleKeeper::keep(placement::Rules rules) {
  const std::lock_guard lock(mutex_);
  rules_ = std::move(rules);
  due_ = true;
  changed_.notify_all();
}

std::optional<Error> RuleKeeper::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void RuleKeeper::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [this] { return due_; });
  while (!stop.stop_requested()) {
    due_ = false;
    const auto rules = *rules_;
    lock.unlock();
    const auto done = apply(rules);
    lock.lock();
    const auto before = std::exchange(trouble_, done ? std::nullopt : std::optional(done.error()));
    if (trouble_ && (!before || before->message != trouble_->message) && options_.log)
      options_.log(to_string(*trouble_));
    changed_.wait_for(lock, stop, done ? options_.look_again : options_.again, [this] { return due_; });
  }
}

Status RuleKeeper::apply(const placement::Rules& rules) {
  Status first;
  const auto note = [&](Status status) {
    if (first && !status) first = std::move(status);
  };
  std::set<std::string> queues, quotas;
  for (const auto& rule : write_rules(rules, options_.journal, options_.name_space_of)) {
    (rule.path.resource == kube::scheduler::kQueues ? queues : quotas).insert(rule.path.name);
    note(put(rule));
  }
  note(tidy(kube::scheduler::kQueues, queues));
  note(tidy(kube::scheduler::kQuotas, quotas));
  // A cluster whose scheduler knows no queues has none to take away.
  if (!first && queues.empty() && quotas.empty() && first.error().kind == ErrorKind::kNotFound) return {};
  return first;
}

Status RuleKeeper::put(const RuleObject& rule) {
  const auto known = api_.get(rule.path);
  if (!known && known.error().kind != ErrorKind::kNotFound) return Failure(known.error());
  if (known) {
    const auto labels = known->value("/metadata/labels"_json_pointer, nlohmann::json::object());
    if (labels.value(kJournalLabel, "") != options_.journal)
      return fail(ErrorKind::kConflict,
                  fmt::format("The {} is there already, and somebody else keeps it", describe(rule.path)),
                  "remove it with kubectl, or give ours another name");
  }
  DROVER_CHECK_OK(api_.apply(rule.path, rule.object, kManager));
  return {};
}

Status RuleKeeper::tidy(const kube::Resource& resource, const std::set<std::string>& names) {
  DROVER_TRY(const auto list,
             api_.list({.resource = resource,
                        .label_selector = fmt::format("{}={}", kJournalLabel, options_.journal)}));
  for (const auto& object : list.items) {
    const auto name = kube::text_at(*object, "/metadata/name");
    if (!names.contains(name))
      DROVER_CHECK_OK(api_.remove({resource, "", name}, kube::text_at(*object, "/metadata/uid")));
  }
  return {};
}

}  // namespace drover::pods
