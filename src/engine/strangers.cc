#include "engine/strangers.h"

#include <fmt/format.h>

#include <future>

namespace drover::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// Looking at all processes costs: a machine with nothing strange is looked at rarely, besides each GPU that
/// is to be given, and a probe takes no more than this part of the time.
constexpr std::chrono::seconds kUsually{30};
constexpr std::chrono::seconds kWhileThereAreSome{1};
constexpr int kPartOfTime = 20;
/// A task is started on the strength of a probe that began no longer ago.
constexpr std::chrono::seconds kFresh{1};

}  // namespace

void Strangers::inspect(const std::vector<gpu::Device>& devices) {
  const auto now = loop_.steady();
  if (!probe_ || probing_) return;
  if (now < next_) {
    if (!found_.empty()) loop_.wake_at(next_);
    return;
  }
  probing_ = true;
  loop_.pool(0, [this, devices, tasks = processes_.of_tasks(), now] {
    auto seen = probe_(devices, tasks);
    loop_.post([this, seen = std::move(seen), now]() mutable {
      probing_ = false;
      const auto taken = std::max<std::chrono::milliseconds>(loop_.steady() - now, {});
      take(std::move(seen));
      const auto rest = found_.empty() ? kUsually : kWhileThereAreSome;
      next_ = loop_.steady() + std::max<std::chrono::milliseconds>(rest, kPartOfTime * taken);
      if (!found_.empty()) loop_.wake_at(next_);
    });
  });
}

void Strangers::take(std::map<std::string, std::string> found) {
  if (found == found_) return;
  found_ = std::move(found);
  changed_();
}

std::function<std::optional<Error>()> Strangers::check_before_start(const std::vector<gpu::Device>& devices) {
  if (!probe_ || devices.empty()) return [] { return std::nullopt; };
  const auto began = Clock::now();
  const auto inspect = [this, devices, tasks = processes_.of_tasks()] { return refuse(devices, tasks); };
  // Whoever comes first does it: a thread that is free by now, or the one that cannot go on without it.
  const auto first = std::async(std::launch::deferred, inspect).share();
  loop_.pool(0, [first] { first.wait(); });
  return [began, inspect, first] {
    return Clock::now() < began + kFresh ? first.get() : inspect();  // an image may have taken hours to come
  };
}

std::optional<Error> Strangers::refuse(const std::vector<gpu::Device>& devices,
                                       const std::vector<TaskProcesses>& tasks) {
  auto seen = probe_(devices, tasks);
  if (seen.empty()) return std::nullopt;
  const auto& [uuid, why] = *seen.begin();
  auto message = fmt::format("GPU {}: {}", uuid, why);
  // On the strand before the task is put back: so it is not given the same GPU again.
  loop_.post([this, seen = std::move(seen)]() mutable {
    auto all = found_;
    all.merge(seen);
    take(std::move(all));
    next_ = loop_.steady() + kWhileThereAreSome;
    loop_.wake_at(next_);
  });
  return Error{ErrorKind::kUnavailable, std::move(message), "", ""};
}

}  // namespace drover::engine
