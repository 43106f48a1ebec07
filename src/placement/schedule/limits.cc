#include "placement/schedule/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover::placement::schedule {
namespace {

bool limited(const Limits& limits) {
  return limits != Limits{};
}

/// The first dimension in which `held` and `more` are together above the bounds. What a job does not ask for
/// cannot keep it back, even if there is too much of it already.
std::optional<std::size_t> over(const Bounds& bounds, const Load& held, const Load& more) {
  for (std::size_t i = 0; i < kDimensions; ++i)
    if (bounds[i] && more[i] > 0 && held[i] + more[i] > *bounds[i]) return i;
  return std::nullopt;
}

Load later(const Account& account) {
  auto load = account.soon;
  return load += account.delta;
}

Load highest(const Load& a, const Load& b) {
  Load result;
  std::ranges::transform(a, b, result.begin(), [](auto x, auto y) { return std::max(x, y); });
  return result;
}

}  // namespace

LimitLedger::LimitLedger(const Rules& rules) {
  for (const auto& [path, queue] : rules.queues) {
    if (!limited(queue.limit)) continue;
    queues_[path] = static_cast<int>(accounts_.size());
    accounts_.push_back({AccountKind::kQueue, path, bounds_of(queue.limit)});
  }
  for (const auto& [subject, quota] : rules.quotas) {
    if (!limited(quota.limit)) continue;
    subjects_[subject] = static_cast<int>(accounts_.size());
    accounts_.push_back({subject.kind == SubjectKind::kUser ? AccountKind::kUser : AccountKind::kNamespace,
                         subject.name, bounds_of(quota.limit)});
  }
}

Accounts LimitLedger::accounts_of(const Job& job) const {
  Accounts result;
  if (!queues_.empty())
    for (auto at = std::string_view(job.queue); !at.empty(); at = parent_of(at))
      if (const auto found = queues_.find(at); found != queues_.end()) result.push_back(found->second);
  if (subjects_.empty()) return result;
  for (const auto& subject :
       {Subject{SubjectKind::kUser, job.user}, Subject{SubjectKind::kNamespace, job.name_space}})
    if (const auto found = subjects_.find(subject); found != subjects_.end()) result.push_back(found->second);
  return result;
}

Load LimitLedger::added(const Account& account, const Demand& demand) const {
  auto load = demand.own;
  for (const auto& [group, milli] : demand.groups)
    if (!account.groups.contains(group)) load[0] += milli;
  return load;
}

Load LimitLedger::join(Account& account, const Demand& demand) {
  const auto load = added(account, demand);
  for (const auto& [group, milli] : demand.groups) ++account.groups[group];
  return load;
}

Load LimitLedger::leave(Account& account, const Demand& demand) {
  for (const auto& [group, milli] : demand.groups)
    if (const auto found = account.groups.find(group); found != account.groups.end() && --found->second == 0)
      account.groups.erase(found);
  return added(account, demand);
}

std::optional<Excess> LimitLedger::excess_now(const Accounts& accounts, const Demand& demand) const {
  for (const auto index : accounts)
    if (const auto dimension = over(account(index).bounds, account(index).now, added(account(index), demand)))
      return Excess{index, *dimension};
  return std::nullopt;
}

std::optional<Excess> LimitLedger::excess(const Accounts& accounts, const Demand& demand, Span span) const {
  for (const auto index : accounts) {
    const auto& of = account(index);
    const auto held = span == Span::kBrief ? of.peak : highest(of.peak, later(of));
    if (const auto dimension = over(of.bounds, held, added(of, demand))) return Excess{index, *dimension};
  }
  return std::nullopt;
}

bool LimitLedger::fits_soon(const Accounts& accounts, const Demand& demand,
                            const std::map<int, Load>& gone) const {
  return std::ranges::all_of(accounts, [&](int index) {
    const auto& of = account(index);
    auto held = highest(of.soon, later(of));
    if (const auto found = gone.find(index); found != gone.end()) held -= found->second;
    return !over(of.bounds, held, added(of, demand));
  });
}

void LimitLedger::start(const Accounts& accounts, const Demand& demand, Span span) {
  for (const auto index : accounts) {
    auto& of = at(index);
    const auto load = join(of, demand);
    of.now += load;
    of.soon += load;
    of.peak += load;
    if (span == Span::kBrief) of.delta -= load;
  }
}

void LimitLedger::end(const Accounts& accounts, const Demand& demand) {
  for (const auto index : accounts) at(index).soon -= leave(at(index), demand);
}

void LimitLedger::hold(const Accounts& accounts, const Demand& demand) {
  for (const auto index : accounts) {
    auto& of = at(index);
    of.soon += added(of, demand);
    of.peak = highest(of.peak, of.soon);
  }
}

void LimitLedger::reserve(const Accounts& accounts, const Demand& demand) {
  for (const auto index : accounts) at(index).delta += added(at(index), demand);
}

void LimitLedger::end_later(const Accounts& accounts, const Demand& demand) {
  for (const auto index : accounts) at(index).delta -= leave(at(index), demand);
}

std::string excess_text(const Account& account, const Excess& excess, const Demand& demand) {
  const auto i = excess.dimension;
  const char* kind = account.kind == AccountKind::kQueue  ? "queue"
                     : account.kind == AccountKind::kUser ? "user"
                                                          : "namespace";
  const auto of = fmt::format("of its {}", amount_text(i, *account.bounds[i]));
  const auto amount = [&](std::int64_t value) {
    return i == 2 ? format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)))
                  : fmt::format("{:.10g}", static_cast<double>(value) / 1000);
  };
  const auto held = account.now[i];
  auto text = fmt::format("the {} '{}' holds {} {}", kind, account.name, amount(held), of);
  const auto wanted = demand.total()[i];
  if (held + wanted <= *account.bounds[i]) return text + ", and the rest is kept for jobs before it";
  if (held < *account.bounds[i]) text += fmt::format(", and {} more are wanted", amount(wanted));
  return text;
}

}  // namespace drover::placement::schedule
