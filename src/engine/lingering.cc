#include "engine/lingering.h"

#include <fmt/format.h>

namespace drover::engine {
namespace {

constexpr std::chrono::seconds kKilledWithin{15};  ///< after the grace: what can end has ended by then
constexpr std::chrono::seconds kAgain{30};

}  // namespace

void Lingering::moved(const control::TaskRecord& record) {
  const auto& id = record.task.id;
  if (record.state != control::TaskState::kStopping) {
    ending_.erase(id);
    return;
  }
  const auto at = loop_.steady() + record.task.grace + kKilledWithin;
  if (ending_.try_emplace(id, One{at, ""}).second) loop_.wake_at(at);
}

void Lingering::inspect() {
  const auto now = loop_.steady();
  std::vector<TaskProcesses> overdue;
  for (auto next = ending_.begin(); next != ending_.end();) {
    const auto one = next++;
    if (now < one->second.overdue)
      loop_.wake_at(one->second.overdue);
    else if (const auto* record = state_.find(one->first))
      overdue.push_back(processes_.of(*record));
    else
      ending_.erase(one);
  }
  if (overdue.empty() || !probe_ || probing_) return;
  if (now < next_) return loop_.wake_at(next_);
  probing_ = true;
  loop_.pool(0, [this, overdue = std::move(overdue)] {
    loop_.post([this, overdue, seen = probe_(overdue)]() mutable {
      probing_ = false;
      next_ = loop_.steady() + kAgain;
      loop_.wake_at(next_);
      found(overdue, std::move(seen));
    });
  });
}

void Lingering::found(const std::vector<TaskProcesses>& asked, std::map<std::string, std::string> found) {
  for (const auto& task : asked) {
    const auto one = ending_.find(task.id);
    const auto* record = state_.find(task.id);
    if (one == ending_.end() || record == nullptr) continue;  // it has ended meanwhile
    auto words = std::move(found[task.id]);
    if (words.empty()) words = "what runs it does not say that it has ended";
    words = fmt::format("it was killed and has not ended: {}{}", words,
                        record->gpus.empty() ? "" : "; until then nobody else is given its GPUs");
    if (words == one->second.words) continue;
    if (one->second.words.empty()) {
      loop_.log(fmt::format("Task '{}' of '{}': {}", task.id, record->task.owner_name, words));
      tell_(task.id, words);
    }
    one->second.words = std::move(words);
  }
}

std::map<std::string, std::string> Lingering::words() const {
  std::map<std::string, std::string> words;
  for (const auto& [id, one] : ending_)
    if (!one.words.empty()) words.emplace(id, one.words);
  return words;
}

}  // namespace drover::engine
