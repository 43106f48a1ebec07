#include "share_facts.h"

#include <chrono>
#include <cstdint>

namespace drover {
namespace {

std::optional<metrics::ShareFacts::Turns> turns_of(const share::Figures& figures,
                                                   const share::Allowance& allowance) {
  using Seconds = std::chrono::duration<double>;
  for (const auto& [gpu, turns] : figures.turns)
    if (gpu == allowance.gpu && turns.name == allowance.name)
      return metrics::ShareFacts::Turns{Seconds(turns.held).count(), Seconds(turns.lent).count(),
                                        Seconds(turns.busy).count(), turns.overruns};
  return std::nullopt;
}

std::optional<metrics::ShareFacts::Guard> counted(const share::Figures& figures,
                                                  const share::Allowance& allowance) {
  const auto found = figures.counted.find(allowance.name);
  if (found == figures.counted.end()) return std::nullopt;
  const auto of_gpu = found->second.find(allowance.gpu);
  if (of_gpu == found->second.end()) return std::nullopt;
  return metrics::ShareFacts::Guard{of_gpu->second.charged, of_gpu->second.refused};
}

}  // namespace

share::Punishment punishment_of(std::string_view offence) {
  using enum share::Punishment;
  return offence == "kill" ? kKill : offence == "report" ? kReport : kKillGuarded;
}

void add_shares(const share::Figures& figures,
                const std::function<std::optional<metrics::Owner>(const std::string& task)>& owner_of,
                metrics::MachineFacts& facts) {
  facts.unattributed = figures.unattributed;
  for (const auto& account : figures.accounts)
    for (const auto& task : account.allowance.tasks)
      if (auto owner = owner_of(task))
        facts.shares[account.allowance.gpu].push_back({.owner = *std::move(owner),
                                                       .tier = account.allowance.tier,
                                                       .limit_bytes = account.allowance.bytes,
                                                       .overruns = account.overruns,
                                                       .offences = account.offences,
                                                       .guard = counted(figures, account.allowance),
                                                       .turns = turns_of(figures, account.allowance)});
}

}  // namespace drover
