#include "control/offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace drover::control {
namespace {

double largest_share(const ResourceAmounts& part, const ResourceAmounts& whole) {
  const auto ratio = [](auto a, auto b) {
    return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
  };
  return std::max({ratio(part.gpus, whole.gpus), ratio(part.milli_cpus, whole.milli_cpus),
                   ratio(part.memory_bytes, whole.memory_bytes)});
}

ResourceAmounts port(int number) {
  return {0, 0, 0, 0, {{number, number}}};
}

}  // namespace

ResourceAmounts held_by(const TaskRecord& record) {
  const auto& task = record.task;
  ResourceAmounts amounts;
  for (const auto& claim : task.resources.gpus) amounts.gpus += claim.count;
  amounts.milli_cpus = task.resources.milli_cpus;
  amounts.memory_bytes = task.resources.memory_bytes;
  for (const int number : record.ports) amounts += port(number);
  if (record.gang_port != 0) amounts += port(record.gang_port);
  return amounts;
}

ResourceAmounts held_by_all(const State& state) {
  ResourceAmounts sum;
  auto task = state.tasks.begin();
  for (const auto& id : state.active) {
    // Where most tasks are active, it is the next one.
    if (task == state.tasks.end() || task->first != id) task = state.tasks.find(id);
    sum += held_by(task->second);
    ++task;
  }
  return sum;
}

std::map<std::string, ResourceAmounts> held_by_frameworks(const State& state) {
  std::map<std::string, ResourceAmounts> sums;
  for (const auto& id : state.active) {
    const auto& record = state.tasks.at(id);
    if (record.task.origin.kind == workload::OriginKind::kFramework)
      sums[record.task.origin.name] += held_by(record);
  }
  return sums;
}

std::map<std::string, ResourceAmounts> held_by_agents(const State& state) {
  if (!state.placed_by_others) return {{agent_id(state.journal_id), held_by_all(state)}};
  std::map<std::string, ResourceAmounts> sums;
  for (const auto& id : state.active) {
    const auto& record = state.tasks.at(id);
    sums[agent_of(state, record)] += held_by(record);
  }
  return sums;
}

std::map<std::string, ResourceAmounts> held_beside_books(const State& state) {
  std::map<std::string, ResourceAmounts> sums;
  if (!state.placed_by_others) {
    sums[agent_id(state.journal_id)].ports = held_by_all(state).ports;
    return sums;
  }
  for (const auto& id : state.active) {
    const auto& record = state.tasks.at(id);
    auto held = held_by(record);
    if (!record.node.empty()) held = {0, 0, 0, 0, std::move(held.ports)};
    sums[agent_of(state, record)] += held;
  }
  return sums;
}

void OfferBook::join(const std::string& framework, Bidder bidder) {
  leave(framework);
  bidders_[framework].bidder = std::move(bidder);
}

std::vector<std::string> OfferBook::change(const std::string& framework, Bidder bidder) {
  const auto found = bidders_.find(framework);
  if (found == bidders_.end()) return {};
  auto& entry = found->second;
  entry.bidder = std::move(bidder);
  const auto& roles = entry.bidder.roles;
  const auto is_left = [&](const auto& role) { return std::ranges::find(roles, role) == roles.end(); };
  std::erase_if(entry.filters, [&](const Filter& filter) { return is_left(filter.role); });
  std::vector<std::string> rescinded;
  std::erase_if(offers_, [&](const auto& offer) {
    if (offer.second.framework != framework || !is_left(offer.second.role)) return false;
    rescinded.push_back(offer.first);
    return true;
  });
  return rescinded;
}

void OfferBook::leave(const std::string& framework) {
  drop_offers_of(framework, nullptr);
  bidders_.erase(framework);
}

void OfferBook::drop_offers_of(const std::string& framework, OfferChanges* changes) {
  std::erase_if(offers_, [&](const auto& entry) {
    if (entry.second.framework != framework) return false;
    if (changes != nullptr) changes->rescinded.emplace_back(framework, entry.first);
    return true;
  });
}

std::string OfferBook::role_wanting(const Entry& entry, const ResourceAmounts& amounts,
                                    const Machine& machine, const Supply& supply, TimePoint now) const {
  // By the machine's total, as Mesos has it: also when all its GPUs are taken.
  if (supply.hides_gpu_machines && machine.second.whole.gpus > 0 && !entry.bidder.knows_gpus) return "";
  for (const auto& role : entry.bidder.roles) {
    if (entry.bidder.suppressed.contains(role)) continue;
    const bool refused = std::ranges::any_of(entry.filters, [&](const Filter& filter) {
      return filter.role == role && filter.agent == machine.first && filter.until > now &&
             filter.refused.covers(amounts);
    });
    if (!refused) return role;
  }
  return "";
}

/// Drover's own queue, or a GPU that fails, may take what was offered.
void OfferBook::rescind_what_is_gone(const Supply& supply, OfferChanges& changes) {
  std::map<std::string, ResourceAmounts> sums;
  for (auto entry = offers_.begin(); entry != offers_.end();) {
    auto& sum = sums[entry->second.agent];
    auto with = sum;
    with += entry->second.amounts;
    // Ports and disk are no reason: what is taken of them is found when the offer is accepted.
    auto counted = with;
    counted.ports.clear();
    counted.disk_bytes = 0;
    const auto machine = supply.machines.find(entry->second.agent);
    if (machine != supply.machines.end() && machine->second.free.covers(counted)) {
      sum = std::move(with);
      ++entry;
      continue;
    }
    changes.rescinded.emplace_back(entry->second.framework, entry->first);
    entry = offers_.erase(entry);
  }
}

void OfferBook::disturb_one(const Machine& machine, const ResourceAmounts& rest, const Supply& supply,
                            TimePoint now, OfferChanges& changes) {
  const auto sums = offered();
  for (const auto& [id, offer] : offers_) {
    if (offer.agent != machine.first || now - offer.at < kUndisturbed) continue;
    auto freed = rest;
    freed += offer.amounts;
    const bool waits = std::ranges::any_of(bidders_, [&](const auto& bidder) {
      return !sums.contains(bidder.first) &&
             !role_wanting(bidder.second, freed, machine, supply, now).empty();
    });
    if (!waits) continue;
    const auto old = offer;
    refuse(old.framework, {old.amounts, old.role, old.agent, ""}, kDefaultRefuseSeconds, now);
    drop_offers_of(old.framework, &changes);
    changes.more_to_offer = true;
    return;
  }
}

OfferChanges OfferBook::allocate(const Supply& supply, TimePoint now) {
  for (auto& [framework, entry] : bidders_)
    std::erase_if(entry.filters, [&](const Filter& filter) { return filter.until <= now; });
  OfferChanges changes;
  rescind_what_is_gone(supply, changes);
  ResourceAmounts whole;
  for (const auto& [agent, machine] : supply.machines) whole += machine.whole;
  auto held = offered();
  for (const auto& [framework, used] : supply.used) held[framework] += used;
  std::map<std::string, ResourceAmounts> rests;
  for (const auto& [agent, machine] : supply.machines) rests[agent] = machine.free;
  for (const auto& [id, offer] : offers_) rests.at(offer.agent) -= offer.amounts;

  using Share = std::pair<double, const std::string*>;
  std::vector<Share> shares;  // who has least comes first
  const auto is_less = [](const Share& a, const Share& b) {
    return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
  };
  for (const auto& [framework, entry] : bidders_)
    shares.emplace_back(largest_share(held[framework], whole), &framework);
  std::ranges::sort(shares, is_less);
  for (const auto& machine : supply.machines) {
    auto& rest = rests.at(machine.first);
    if (!rest.worth_offering()) {
      if (!changes.more_to_offer) disturb_one(machine, rest, supply, now, changes);
      continue;
    }
    for (auto& [share, framework] : shares) {
      const auto role = role_wanting(bidders_.at(*framework), rest, machine, supply, now);
      if (role.empty()) continue;
      held[*framework] += rest;
      share = largest_share(held[*framework], whole);
      changes.made.push_back(fmt::format("{}-O{}", master_, next_offer_++));
      offers_.emplace(changes.made.back(), Offer{*framework, role, machine.first, std::move(rest), now});
      std::ranges::sort(shares, is_less);
      break;
    }
  }
  return changes;
}

TakenOffers OfferBook::take(const std::string& framework, const std::vector<std::string>& ids) {
  TakenOffers taken;
  if (ids.empty()) taken.mistake = "No offers specified";
  std::set<std::string> seen;
  for (const auto& id : ids) {
    if (!seen.insert(id).second) {
      taken.mistake = fmt::format("Duplicate offer {} in offer list", id);
      continue;
    }
    const auto found = offers_.find(id);
    if (found == offers_.end() || found->second.framework != framework) {
      taken.mistake = fmt::format("Offer {} is no longer valid", id);
      continue;
    }
    const auto& [framework_of, role, agent, amounts, at] = found->second;
    if (!taken.agent.empty() && taken.agent != agent)
      taken.mistake = fmt::format(
          "Aggregated offers must belong to one single agent. Offer {} uses agent {} and agent {}", id, agent,
          taken.agent);
    if (!taken.role.empty() && taken.role != role)
      taken.mistake = fmt::format(
          "Aggregated offers must be allocated to the same role. Offer {} uses role '{}' but another is "
          "using "
          "role '{}'",
          id, role, taken.role);
    taken.role = role;
    taken.agent = agent;
    taken.amounts += amounts;
    offers_.erase(found);
  }
  return taken;
}

void OfferBook::refuse(const std::string& framework, TakenOffers taken, double seconds, TimePoint now) {
  const auto found = bidders_.find(framework);
  if (found == bidders_.end()) return;
  if (!(seconds >= 0)) seconds = kDefaultRefuseSeconds;
  if (seconds == 0 || taken.amounts == ResourceAmounts{}) return;
  seconds = std::min(seconds, kMostRefuseSeconds);
  const auto until = now + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  auto& filters = found->second.filters;
  std::erase_if(filters, [&](const Filter& filter) {
    return filter.role == taken.role && filter.agent == taken.agent && filter.until <= until &&
           taken.amounts.covers(filter.refused);
  });
  filters.push_back({std::move(taken.role), std::move(taken.agent), std::move(taken.amounts), until});
}

void OfferBook::suppress(const std::string& framework, const std::vector<std::string>& roles) {
  const auto found = bidders_.find(framework);
  if (found == bidders_.end()) return;
  auto& bidder = found->second.bidder;
  for (const auto& role : bidder.roles)
    if (roles.empty() || std::ranges::find(roles, role) != roles.end()) bidder.suppressed.insert(role);
}

void OfferBook::revive(const std::string& framework, const std::vector<std::string>& roles) {
  const auto found = bidders_.find(framework);
  if (found == bidders_.end()) return;
  auto& [bidder, filters] = found->second;
  const auto chosen = roles.empty() ? bidder.roles : roles;
  for (const auto& role : chosen) {
    bidder.suppressed.erase(role);
    std::erase_if(filters, [&](const Filter& filter) { return filter.role == role; });
  }
}

std::map<std::string, ResourceAmounts> OfferBook::offered() const {
  std::map<std::string, ResourceAmounts> sums;
  for (const auto& [id, offer] : offers_) sums[offer.framework] += offer.amounts;
  return sums;
}

}  // namespace drover::control
