#include "control/offers.h"

#include <fmt/format.h>

#include <algorithm>

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
  for (const auto& id : state.active) sum += held_by(state.tasks.at(id));
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

std::string OfferBook::role_wanting(const Entry& entry, const ResourceAmounts& amounts, const Supply& supply,
                                    TimePoint now) const {
  // By the machine's total, as Mesos has it: also when all its GPUs are taken.
  if (supply.hides_gpu_machines && supply.whole.gpus > 0 && !entry.bidder.knows_gpus) return "";
  for (const auto& role : entry.bidder.roles) {
    if (entry.bidder.suppressed.contains(role)) continue;
    const bool refused = std::ranges::any_of(entry.filters, [&](const Filter& filter) {
      return filter.role == role && filter.until > now && filter.refused.covers(amounts);
    });
    if (!refused) return role;
  }
  return "";
}

/// Those that have least of the machine first.
std::vector<std::string> OfferBook::by_share(const Supply& supply) const {
  auto sums = offered();
  for (const auto& [framework, used] : supply.used) sums[framework] += used;
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [framework, entry] : bidders_)
    shares.emplace_back(largest_share(sums[framework], supply.whole), framework);
  std::ranges::sort(shares);
  std::vector<std::string> order;
  for (auto& [share, framework] : shares) order.push_back(std::move(framework));
  return order;
}

/// Drover's own queue, or a GPU that fails, may take what was offered.
void OfferBook::rescind_what_is_gone(const Supply& supply, OfferChanges& changes) {
  ResourceAmounts sum;
  for (auto entry = offers_.begin(); entry != offers_.end();) {
    auto with = sum;
    with += entry->second.amounts;
    // Ports and disk are no reason: what is taken of them is found when the offer is accepted.
    auto counted = with;
    counted.ports.clear();
    counted.disk_bytes = 0;
    if (supply.free.covers(counted)) {
      sum = std::move(with);
      ++entry;
      continue;
    }
    changes.rescinded.emplace_back(entry->second.framework, entry->first);
    entry = offers_.erase(entry);
  }
}

void OfferBook::disturb_one(const Supply& supply, const ResourceAmounts& rest, TimePoint now,
                            OfferChanges& changes) {
  const auto sums = offered();
  for (const auto& [id, offer] : offers_) {
    if (now - offer.at < kUndisturbed) continue;
    auto freed = rest;
    freed += offer.amounts;
    const bool waits = std::ranges::any_of(bidders_, [&](const auto& bidder) {
      return !sums.contains(bidder.first) && !role_wanting(bidder.second, freed, supply, now).empty();
    });
    if (!waits) continue;
    const auto old = offer;
    refuse(old.framework, old.role, old.amounts, kDefaultRefuseSeconds, now);
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
  auto rest = supply.free;
  for (const auto& [id, offer] : offers_) rest -= offer.amounts;
  if (!rest.worth_offering()) {
    disturb_one(supply, rest, now, changes);
    return changes;
  }
  for (const auto& framework : by_share(supply)) {
    const auto role = role_wanting(bidders_.at(framework), rest, supply, now);
    if (role.empty()) continue;
    changes.made = fmt::format("{}-O{}", master_, next_offer_++);
    offers_.emplace(changes.made, Offer{framework, role, std::move(rest), now});
    return changes;
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
    const auto& role = found->second.role;
    if (!taken.role.empty() && taken.role != role)
      taken.mistake = fmt::format(
          "Aggregated offers must be allocated to the same role. Offer {} uses role '{}' but another is "
          "using "
          "role '{}'",
          id, role, taken.role);
    taken.role = role;
    taken.amounts += found->second.amounts;
    offers_.erase(found);
  }
  return taken;
}

void OfferBook::refuse(const std::string& framework, const std::string& role, ResourceAmounts amounts,
                       double seconds, TimePoint now) {
  const auto found = bidders_.find(framework);
  if (found == bidders_.end()) return;
  if (!(seconds >= 0)) seconds = kDefaultRefuseSeconds;
  if (seconds == 0 || amounts == ResourceAmounts{}) return;
  seconds = std::min(seconds, kMostRefuseSeconds);
  const auto until = now + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  auto& filters = found->second.filters;
  std::erase_if(filters, [&](const Filter& filter) {
    return filter.role == role && filter.until <= until && amounts.covers(filter.refused);
  });
  filters.push_back({role, std::move(amounts), until});
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
