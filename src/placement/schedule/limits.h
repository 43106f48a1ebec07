#pragma once

// Who holds how much of what they may hold at most: queues with all their ancestors, users, namespaces.
// Kept for four moments at once, so that no promise that a plan makes is broken by what it starts:
//   now    what runs, and what the plan starts;
//   soon   when what is ending has ended, and those for whom it was ended have started;
//   peak   the most on the way from now to soon;
//   later  soon, and the reservation has begun.
// Only accounts that have a limit exist. Deterministic; one plan long.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/queues.h"
#include "placement/schedule.h"
#include "placement/schedule/load.h"

namespace drover::placement::schedule {

enum class AccountKind { kQueue, kUser, kNamespace };

struct Account {
  AccountKind kind{};
  std::string name;
  Bounds bounds;
  Load now{};
  Load soon{};
  Load peak{};
  Load delta{};                       ///< later − soon
  std::map<std::string, int> groups;  ///< how many of those who run hold the GPUs of a group
};

/// Indices of a job's accounts: its queue and those above it, its user, its namespace.
using Accounts = std::vector<int>;

/// Until when a job would hold what it gets.
enum class Span {
  kLasting,  ///< perhaps beyond the begin of the reservation
  kBrief,    ///< its time limit ends it before the reservation can begin
};

/// What is over: this dimension of this account.
struct Excess {
  int account = 0;
  std::size_t dimension = 0;
};

class LimitLedger {
 public:
  explicit LimitLedger(const Rules& rules);

  Accounts accounts_of(const Job& job) const;
  const Account& account(int index) const { return accounts_[static_cast<std::size_t>(index)]; }

  /// What would be over if this job started now.
  std::optional<Excess> excess_now(const Accounts& accounts, const Demand& demand) const;
  /// What would be over at any time from now on if this job started now for that long.
  std::optional<Excess> excess(const Accounts& accounts, const Demand& demand, Span span) const;
  /// Whether it could start soon, if in addition `gone` (by account) ended.
  bool fits_soon(const Accounts& accounts, const Demand& demand, const std::map<int, Load>& gone) const;

  void start(const Accounts& accounts, const Demand& demand, Span span);  ///< or runs already
  void end(const Accounts& accounts, const Demand& demand);               ///< it runs and is going to end
  void hold(const Accounts& accounts, const Demand& demand);              ///< it starts soon
  void reserve(const Accounts& accounts, const Demand& demand);           ///< it starts later
  void end_later(const Accounts& accounts, const Demand& demand);         ///< it has ended by then

 private:
  Account& at(int index) { return accounts_[static_cast<std::size_t>(index)]; }
  Load added(const Account& account, const Demand& demand) const;
  /// Counts its groups as held by one job more; returns what is new.
  Load join(Account& account, const Demand& demand);
  Load leave(Account& account, const Demand& demand);

  std::vector<Account> accounts_;
  std::map<std::string, int, std::less<>> queues_;
  std::map<Subject, int> subjects_;
};

/// "the queue 'vision' holds 8 of its 8 GPUs".
std::string excess_text(const Account& account, const Excess& excess, const Demand& demand);

}  // namespace drover::placement::schedule
