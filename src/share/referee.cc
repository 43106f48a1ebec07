#include "share/referee.h"

#include <algorithm>

#include "gpu/share_tier.h"

namespace drover::share {
namespace {

// Looks are never more punctual than threads are; two that follow at once would be one.
constexpr auto kBetween = kInterval - kInterval / 5;

}  // namespace

void Referee::set(std::vector<Allowance> allowances) {
  std::vector<Account> accounts;
  std::vector<Memory> memories;
  std::set<std::string> gpus;
  for (auto& allowance : allowances) {
    gpus.insert(allowance.gpu);
    const auto known = std::ranges::find_if(accounts_, [&](const Account& account) {
      return account.allowance.gpu == allowance.gpu && account.allowance.name == allowance.name;
    });
    const bool is_new = known == accounts_.end();
    memories.push_back(is_new ? Memory{} : memories_[static_cast<std::size_t>(known - accounts_.begin())]);
    auto& memory = memories.back();
    const auto before = is_new ? allowance.earlier : known->allowance.bytes;
    if (before > allowance.bytes) memory.spared = std::max(memory.spared, before);
    accounts.push_back(is_new ? Account{} : *known);
    accounts.back().allowance = std::move(allowance);
  }
  accounts_ = std::move(accounts);
  memories_ = std::move(memories);
  const auto is_unwatched = [&](const auto& entry) { return !gpus.contains(entry.first); };
  std::erase_if(born_, is_unwatched);
  std::erase_if(unattributed_, is_unwatched);
}

/// The driver may tell of a process for a while after its end, when its number is another's already.
bool Referee::is_reused(const std::string& gpu, const HeldMemory& process) const {
  const auto known = born_.find(gpu);
  if (known == born_.end()) return false;
  const auto first = known->second.find(process.pid);
  return first != known->second.end() && first->second != process.born;
}

void Referee::remember_processes(const std::string& gpu, const Look& look) {
  auto& before = born_[gpu];
  std::map<std::uint32_t, std::uint64_t> now;
  for (const auto& process : look.processes) {
    const auto known = before.find(process.pid);
    now[process.pid] = known == before.end() ? process.born : known->second;
  }
  before = std::move(now);
}

std::map<std::string, std::uint64_t> Referee::held_by_task(const std::string& gpu, const Look& look) const {
  std::map<std::string, std::uint64_t> held;
  for (const auto& process : look.processes)
    held[process.born == 0 || is_reused(gpu, process) ? "" : process.task] += process.bytes;
  return held;
}

void Referee::judge_one(Account& account, Memory& memory, const std::map<std::string, std::uint64_t>& held,
                        Time at, std::vector<Verdict>& verdicts) const {
  const auto& allowance = account.allowance;
  account.held = 0;
  const std::string* most = nullptr;
  std::uint64_t its = 0;
  for (const auto& task : allowance.tasks) {
    const auto found = held.find(task);
    if (found == held.end()) continue;
    account.held += found->second;
    if (most == nullptr || found->second > its) most = &task;
    its = std::max(its, found->second);
  }
  memory.spared = account.held > allowance.bytes ? std::min(memory.spared, account.held) : 0;
  if (account.held > allowance.bytes) ++account.overruns;
  if (account.held <= allowance.bytes || account.held - allowance.bytes <= kTolerance) {
    memory.over_since.reset();
    if (memory.offended && at < *memory.offended) memory.offended = at;  // the clock was set back
    if (memory.offended && at - *memory.offended >= kForgiven) memory.offended.reset();
    return;
  }
  if (!memory.over_since || at < *memory.over_since) memory.over_since = at;
  if (at - *memory.over_since < kBetween) return;
  if (!memory.offended) {
    ++account.offences;
    verdicts.push_back({Verdict::Kind::kOffence, *most, allowance, account.held});
  }
  memory.offended = at;
  const bool ends = punishment_ == Punishment::kKill ||
                    (punishment_ == Punishment::kKillGuarded && allowance.tier == gpu::kGuarded);
  const bool is_spared = memory.spared > 0 && account.held - memory.spared <= kTolerance;
  if (!ends || is_spared) return;
  if (memory.ended && at >= *memory.ended && at - *memory.ended < kEndedAgain) return;
  memory.ended = at;
  verdicts.push_back({Verdict::Kind::kEnd, *most, allowance, account.held});
}

std::vector<Verdict> Referee::judge(const Looks& looks, Time at) {
  std::map<std::string, std::map<std::string, std::uint64_t>> held;
  for (const auto& [gpu, look] : looks) {
    held[gpu] = held_by_task(gpu, look);
    remember_processes(gpu, look);
    if (!look.used) {
      unattributed_.erase(gpu);
      continue;
    }
    std::uint64_t of_tasks = 0;
    for (const auto& [task, bytes] : held[gpu])
      if (!task.empty()) of_tasks += bytes;
    unattributed_[gpu] = *look.used - std::min(*look.used, of_tasks);
  }
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < accounts_.size(); ++i)
    if (const auto seen = held.find(accounts_[i].allowance.gpu); seen != held.end())
      judge_one(accounts_[i], memories_[i], seen->second, at, verdicts);
  return verdicts;
}

}  // namespace drover::share
