#include "engine/checks/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>

#include "base/as_tuple.h"
#include "engine/checks/gate.h"
#include "engine/checks/probe.h"

namespace drover::engine {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

/// At once, so that many servers that hang cannot take all descriptors.
constexpr Gate::Most kMostProbes{256, 64};
/// At once: each holds a thread of the pool.
constexpr std::size_t kMostCommands = 16;
/// No service may keep the places of others for longer.
constexpr milliseconds kLongest = std::chrono::minutes(1);
constexpr milliseconds kShortestInterval{100};
constexpr std::size_t kMaxWhy = 300;

milliseconds interval_of(const CheckTarget& target) {
  return std::max(std::visit([](const auto& check) { return check.interval; }, target.what),
                  kShortestInterval);
}

bool is_command(const CheckTarget& target) {
  const auto* health = std::get_if<workload::HealthCheck>(&target.what);
  return health != nullptr && health->kind == workload::CheckKind::kCommand;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  text.erase(0, text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  return text.substr(0, kMaxWhy);
}

CheckResult result_of(const CheckTarget& target, bool passed, std::string why) {
  return {target.task_id, target.check, passed, std::move(why), std::nullopt, std::nullopt};
}

CheckResult judge_command(const CheckTarget& target, const Result<CheckPorts::CommandOutcome>& ran) {
  if (!ran) return result_of(target, false, to_string(ran.error()));
  const auto said = last_line(ran->output);
  auto result =
      result_of(target, ran->exit_status == 0,
                ran->exit_status == 0 ? "the command succeeded"
                                      : fmt::format("the command exited with status {}{}{}", ran->exit_status,
                                                    said.empty() ? "" : ": ", said));
  result.status = ran->exit_status;
  return result;
}

/// None: the answer says nothing about the task.
std::optional<CheckResult> judge(const CheckTarget& target, const workload::HealthCheck& check,
                                 const ProbeAnswer& answer) {
  if (check.kind == workload::CheckKind::kTcp) {
    const bool open = answer.trouble.empty();
    auto result = result_of(target, open, open ? "the port is open" : answer.trouble);
    result.status = open ? 1 : 0;
    return result;
  }
  if (!answer.trouble.empty()) return result_of(target, false, answer.trouble);
  const int status = answer.response ? answer.response->status : 0;
  if (status < 200 && check.ignore_http_1xx) return std::nullopt;
  auto result = result_of(target, status >= 200 && status < 400,
                          fmt::format("{} answered {}", check.path, status_text(status)));
  result.status = status;
  return result;
}

std::optional<CheckResult> judge(const CheckTarget& target, const workload::ReadinessCheck& check,
                                 const ProbeAnswer& answer) {
  if (!answer.trouble.empty()) return result_of(target, false, answer.trouble);
  const int status = answer.response ? answer.response->status : 0;
  const auto& ready = check.ready_statuses;
  auto result = result_of(target, std::find(ready.begin(), ready.end(), status) != ready.end(),
                          fmt::format("{} answered {}", check.path, status_text(status)));
  result.response = answer.response;
  return result;
}

ProbeRequest request_of(const CheckTarget& target, const workload::HealthCheck& check) {
  return {check.kind, target.host, target.port, check.path, std::min(check.timeout, kLongest), false};
}

ProbeRequest request_of(const CheckTarget& target, const workload::ReadinessCheck& check) {
  const auto kind = check.https ? workload::CheckKind::kHttps : workload::CheckKind::kHttp;
  return {kind,
          target.host,
          target.port,
          check.path,
          std::min(check.timeout, kLongest),
          check.preserve_last_response};
}

}  // namespace

class Checks::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& context, CheckPorts ports, std::size_t commands_of_user)
      : context_(context), ports_(std::move(ports)), commands_({kMostCommands, commands_of_user}) {}

  void set(const std::string& task_id, std::vector<CheckTarget> targets) {
    std::map<Key, CheckTarget> wanted;
    for (auto& target : targets) wanted.insert_or_assign({task_id, target.check}, std::move(target));
    for (auto entry = entries_.lower_bound({task_id, ""});
         entry != entries_.end() && entry->first.first == task_id;) {
      const auto found = wanted.find(entry->first);
      const bool stays = found != wanted.end() && found->second == entry->second->target;
      if (!stays) entry->second->end();
      entry = stays ? std::next(entry) : entries_.erase(entry);
    }
    for (auto& [key, target] : wanted) {
      if (entries_.contains(key)) continue;
      auto entry = std::make_shared<Entry>(context_, std::move(target));
      entries_.emplace(key, entry);
      asio::co_spawn(context_, follow(shared_from_this(), entry), asio::detached);
    }
  }
  void end() {
    for (const auto& [key, entry] : entries_) entry->end();
    entries_.clear();
  }

  std::size_t size() const { return entries_.size(); }

 private:
  using Key = std::pair<std::string, std::string>;

  struct Entry {
    Entry(asio::io_context& context, CheckTarget given) : target(std::move(given)), timer(context) {}
    void end() {
      active = false;
      timer.cancel();
    }
    CheckTarget target;
    asio::steady_timer timer;
    bool active = true;
  };

  milliseconds first_wait(const CheckTarget& target) const {
    const auto* health = std::get_if<workload::HealthCheck>(&target.what);
    if (health == nullptr) return milliseconds(0);
    const auto since = ports_.now() - target.started_at;
    // Also when the clock was set back meanwhile.
    return std::clamp(std::chrono::duration_cast<milliseconds>(health->delay - since), milliseconds(0),
                      std::max(health->delay, milliseconds(0)));
  }

  /// Until its target is gone. `self` keeps all alive that it needs.
  static asio::awaitable<void> follow(std::shared_ptr<Impl> self, std::shared_ptr<Entry> entry) {
    auto next = std::chrono::steady_clock::now() + self->first_wait(entry->target);
    while (entry->active) {
      entry->timer.expires_at(next);
      (void)co_await entry->timer.async_wait(kAsTuple);
      if (!entry->active) co_return;
      auto& gate = is_command(entry->target) ? self->commands_ : self->probes_;
      co_await gate.enter(entry->target.owner);
      const auto began = std::chrono::steady_clock::now();
      std::optional<CheckResult> result;
      if (entry->active) result = co_await self->perform(entry->target);
      gate.leave(entry->target.owner);
      if (entry->active && result) self->ports_.result(*result);
      next = std::max(began + interval_of(entry->target), std::chrono::steady_clock::now());
    }
  }

  asio::awaitable<std::optional<CheckResult>> perform(CheckTarget target) {
    if (const auto* health = std::get_if<workload::HealthCheck>(&target.what)) {
      if (is_command(target)) co_return judge_command(target, co_await run(target.task_id, *health));
      co_return judge(target, *health, co_await probe(request_of(target, *health)));
    }
    const auto& readiness = std::get<workload::ReadinessCheck>(target.what);
    co_return judge(target, readiness, co_await probe(request_of(target, readiness)));
  }

  asio::awaitable<Result<CheckPorts::CommandOutcome>> run(std::string task_id, workload::HealthCheck check) {
    // The answer comes from another thread: it is handed over on ours, and wakes us.
    struct Waiting {
      explicit Waiting(asio::io_context& context) : timer(context, asio::steady_timer::time_point::max()) {}
      asio::steady_timer timer;
      std::optional<Result<CheckPorts::CommandOutcome>> answer;
    };
    const auto waiting = std::make_shared<Waiting>(context_);
    ports_.run_command(task_id, check.command, std::min(check.timeout, kLongest),
                       [this, waiting](auto answer) {
                         asio::post(context_, [waiting, answer = std::move(answer)]() mutable {
                           waiting->answer = std::move(answer);
                           waiting->timer.cancel();
                         });
                       });
    if (!waiting->answer) (void)co_await waiting->timer.async_wait(kAsTuple);
    if (!waiting->answer) co_return fail(ErrorKind::kInternal, "The command gave no answer");
    co_return *waiting->answer;
  }

  asio::io_context& context_;
  CheckPorts ports_;
  Gate probes_{kMostProbes};
  Gate commands_;
  std::map<Key, std::shared_ptr<Entry>> entries_;
};

Checks::Checks(asio::io_context& context, CheckPorts ports, std::size_t commands_of_user)
    : impl_(std::make_shared<Impl>(context, std::move(ports), commands_of_user)) {}

Checks::~Checks() {
  impl_->end();
}

void Checks::set(const std::string& task_id, std::vector<CheckTarget> targets) {
  impl_->set(task_id, std::move(targets));
}

std::size_t Checks::size() const {
  return impl_->size();
}

}  // namespace drover::engine
