// What LocalEngine knows of tasks that do not end although they have been killed. They keep their GPUs: what
// hangs in the driver may still use them. So it is told whose they are, and what hangs.

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "engine/local.h"

namespace drover::engine {
namespace {

constexpr std::chrono::seconds kKilledWithin{15};  ///< after the grace: what can end has ended by then
constexpr std::chrono::seconds kAgain{30};

}  // namespace

void LocalEngine::is_to_end(const control::TaskRecord& record) {
  const auto at = steady() + record.task.grace + kKilledWithin;
  if (lingering_.try_emplace(record.task.id, Lingering{at, ""}).second) ports_.wake_at(at);
}

void LocalEngine::look_at_lingering() {
  const auto now = steady();
  std::vector<TaskProcesses> overdue;
  for (auto next = lingering_.begin(); next != lingering_.end();) {
    const auto one = next++;
    if (now < one->second.overdue)
      ports_.wake_at(one->second.overdue);
    else if (const auto* record = state_.find(one->first))
      overdue.push_back(processes_.of(*record));
    else
      lingering_.erase(one);
  }
  if (overdue.empty() || !ports_.what_still_runs || looking_at_lingering_) return;
  if (now < look_at_lingering_at_) return ports_.wake_at(look_at_lingering_at_);
  looking_at_lingering_ = true;
  ports_.pool(0, [this, overdue = std::move(overdue)] {
    ports_.post([this, overdue, found = ports_.what_still_runs(overdue)]() mutable {
      looking_at_lingering_ = false;
      look_at_lingering_at_ = steady() + kAgain;
      ports_.wake_at(look_at_lingering_at_);
      lingering_found(overdue, std::move(found));
    });
  });
}

void LocalEngine::lingering_found(const std::vector<TaskProcesses>& asked,
                                  std::map<std::string, std::string> found) {
  for (const auto& task : asked) {
    const auto one = lingering_.find(task.id);
    const auto* record = state_.find(task.id);
    if (one == lingering_.end() || record == nullptr) continue;  // it has ended meanwhile
    auto words = std::move(found[task.id]);
    if (words.empty()) words = "what runs it does not say that it has ended";
    words = fmt::format("it was killed and has not ended: {}{}", words,
                        record->gpus.empty() ? "" : "; until then nobody else is given its GPUs");
    if (words == one->second.words) continue;
    if (one->second.words.empty()) {
      ports_.log(fmt::format("Task '{}' of '{}': {}", task.id, record->task.owner_name, words));
      feed_.add({0, ports_.now(), "task_lingering", task.id, record->task.owner,
                 fmt::format("{}: {}", record->task.name, words)});
    }
    one->second.words = std::move(words);
  }
}

}  // namespace drover::engine
