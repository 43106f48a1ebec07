#include "placement/outlook.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "placement/device_mask.h"

namespace drover::placement {
namespace {

constexpr double kTemperature = 10;  ///< milli-GPU
constexpr int kFirstSteps = 300;
constexpr int kLaterSteps = 6;
constexpr double kFirstRate = 0.5;
constexpr double kLaterRate = 0.2;
/// A little more is expected than fits, so that what is scarce gets its price.
constexpr double kHorizon = 1.1;
/// A cluster that is nearly full still expects to fill this part of it, as work ends.
constexpr double kLeastFree = 0.03;
/// CPU-only work has to go somewhere, but a CPU is worth less to it than to the GPUs beside it.
constexpr double kCpuOnlyReward = 0.3;
/// What fits must be placed, planned or not. So an idle GPU is worth less than its best filling by this part
/// of what a request that comes by chance would waste of it, but by no more than the fillings are uncertain.
constexpr double kUnplanned = 0.6;
constexpr double kMostUnplanned = kTemperature;

bool can_weigh(const TypicalRequest& typical) {
  const auto& request = typical.request;
  return typical.weight > 0 && std::isfinite(typical.weight) && validate(request).has_value() &&
         request.gpus.size() <= 1 && (request.share.whole() || request.gpu_count() == 1) &&
         request.gpu_count() <= Filling::kMaxIdle;
}

}  // namespace

struct Outlook::Part {
  int device_class = 0;
  int level = 0;  ///< of one GPU, or
  int idle = 0;   ///< so many idle GPUs
  std::size_t tier = 0;
};

struct Outlook::Room {
  boost::container::small_vector<Part, 8> parts;
  double milli_cpus = 0;
};

void Outlook::expect(const std::vector<TypicalRequest>& mix) {
  const auto before = std::exchange(typical_, {});
  for (const auto& [request, weight] : mix) {
    if (!can_weigh({request, weight})) continue;
    const auto known = std::ranges::find_if(
        before, [&](const auto& typical) { return typical.shape->request() == request; });
    if (known == before.end()) {
      typical_.push_back({std::make_shared<const Shape>(request), weight});
      continue;
    }
    typical_.push_back(*known);
    typical_.back().weight = weight;
  }
  classes_.clear();
  class_numbers_.clear();
  kinds_.clear();
  worths_.clear();
}

/// Devices on which every typical request takes the same are of one class.
void Outlook::learn_kind(const NodeKind& kind) {
  if (at(kind.id) >= kinds_.size()) kinds_.resize(at(kind.id) + 1);
  auto& by_device = kinds_[at(kind.id)];
  if (!by_device.empty()) return;
  for (int device = 0; device < kind.count(); ++device) {
    DeviceClass takes;
    for (const auto& typical : typical_) {
      const auto& fit = typical.shape->on(kind);
      const bool allowed = (fit.allowed & device_bit(device)) != 0;
      takes.push_back(allowed ? std::max(1, fit.parts[at(device)].milli) : 0);
    }
    by_device.push_back(learn_class(std::move(takes)));
  }
}

int Outlook::learn_class(DeviceClass takes) {
  const auto [found, is_new] = class_numbers_.emplace(std::move(takes), static_cast<int>(classes_.size()));
  if (!is_new) return found->second;
  auto& added = classes_.emplace_back(Class{.takes = found->first, .multiples = {}});
  for (std::size_t i = 0; i < typical_.size(); ++i)
    if (added.takes[i] > 0 && typical_[i].shape->gpus() > 1)
      added.multiples.push_back(static_cast<double>(typical_[i].shape->request().milli_cpus));
  std::ranges::sort(added.multiples);
  return found->second;
}

/// How many of each are to be expected, what placing one is worth, and which prices a CPU may have.
void Outlook::learn_demand(const std::vector<const NodeState*>& nodes) {
  double gpus = 0;
  double free_gpus = 0;
  double cpus = 0;
  for (const auto* node : nodes) {
    gpus += 1000.0 * std::popcount(node->healthy);
    cpus += static_cast<double>(node->milli_cpus);
    for (auto rest = node->healthy; rest != 0; rest &= rest - 1)
      free_gpus += std::max(0, node->devices[at(std::countr_zero(rest))].free_milli);
  }
  const auto milli_gpus_of = [&](std::size_t i) {
    int most = 0;
    for (const auto& device_class : classes_) most = std::max(most, device_class.takes[i]);
    return static_cast<double>(most) * typical_[i].shape->gpus();
  };
  const auto gpu_per_cpu = cpus > 0 ? gpus / cpus : 0;
  double mean = 0;
  for (std::size_t i = 0; i < typical_.size(); ++i) mean += typical_[i].weight * milli_gpus_of(i);
  const auto coming = mean > 0 ? std::max(free_gpus, kLeastFree * gpus) * kHorizon / mean : 0;
  for (std::size_t i = 0; i < typical_.size(); ++i) {
    auto& typical = typical_[i];
    typical.expected = coming * typical.weight;
    const auto request_cpus = static_cast<double>(typical.shape->request().milli_cpus);
    typical.reward =
        typical.shape->gpus() > 0 ? milli_gpus_of(i) : kCpuOnlyReward * gpu_per_cpu * request_cpus;
    typical.price = typical.priced ? std::min(typical.price, typical.reward) : 0.9 * typical.reward;
  }
  for (std::size_t i = 1; i < kCpuPrices; ++i)
    cpu_prices_[i] = gpu_per_cpu * std::pow(10, -2 + 3.0 * static_cast<double>(i - 1) /
                                                         static_cast<double>(kCpuPrices - 2));
}

void Outlook::update(const std::vector<const NodeState*>& nodes) {
  for (const auto* node : nodes) learn_kind(*node->kind);
  learn_demand(nodes);
  std::vector<Room> rooms;
  for (const auto* node : nodes) rooms.push_back(room_of(*node));
  const bool first = mostly_new();
  for (int i = 0; i < (first ? kFirstSteps : kLaterSteps); ++i) {
    weigh(true);
    step(rooms, (first ? kFirstRate : kLaterRate) / (1 + i / 30.0));
  }
  weigh(false);
  for (auto& typical : typical_) typical.priced = true;
}

bool Outlook::mostly_new() const {
  double all = 0;
  double fresh = 0;
  for (const auto& typical : typical_) {
    all += typical.weight;
    if (!typical.priced) fresh += typical.weight;
  }
  return fresh > all / 2;
}

Outlook::Room Outlook::room_of(const NodeState& node) const {
  Room room{.milli_cpus = static_cast<double>(std::max<std::int64_t>(0, node.free_milli_cpus))};
  const auto& classes = kinds_[at(node.kind->id)];
  for (auto rest = node.healthy; rest != 0; rest &= rest - 1) {
    const auto device = at(std::countr_zero(rest));
    const auto device_class = classes[device];
    const auto level = node.devices[device].free_milli * Filling::kLevels / 1000;
    if (level <= 0) continue;
    if (level < Filling::kLevels) {
      room.parts.push_back({device_class, level, 0});
      continue;
    }
    const auto same = std::ranges::find_if(room.parts, [&](const auto& part) {
      return part.device_class == device_class && part.idle > 0 && part.idle < Filling::kMaxIdle;
    });
    if (same != room.parts.end()) {
      ++same->idle;
      continue;
    }
    const auto& multiples = classes_[at(device_class)].multiples;
    const auto tier = std::ranges::upper_bound(multiples, room.milli_cpus) - multiples.begin();
    room.parts.push_back({device_class, 0, 1, static_cast<std::size_t>(tier)});
  }
  return room;
}

/// Every class of devices at every price of a CPU.
void Outlook::weigh(bool for_use) {
  cpu_floor_ = 0;
  for (const auto& typical : typical_)
    if (const auto cpus = typical.shape->request().milli_cpus; typical.shape->gpus() == 0 && cpus > 0)
      cpu_floor_ = std::max(cpu_floor_, typical.price / static_cast<double>(cpus));
  for (std::size_t i = 0; i < kCpuPrices; ++i) {
    floored_prices_[i] = std::max(cpu_prices_[i], cpu_floor_);
    const bool outbid = i + 1 < kCpuPrices && cpu_prices_[i + 1] <= cpu_floor_;
    outbid_[i] = outbid ? std::numeric_limits<double>::infinity() : 0;
  }
  fillings_.clear();
  for (const auto& device_class : classes_)
    for (const auto cpu_price : cpu_prices_) {
      std::vector<Filler> fillers;
      for (std::size_t i = 0; i < typical_.size(); ++i) {
        const auto& typical = typical_[i];
        if (device_class.takes[i] == 0) continue;
        const auto cpus = static_cast<double>(typical.shape->request().milli_cpus);
        fillers.push_back({static_cast<int>(i), typical.shape->gpus(), device_class.takes[i],
                           typical.price - cpu_price * cpus, cpus, typical.weight});
      }
      fillings_.emplace_back(fillers, kTemperature, for_use);
    }
  flatten(!for_use);
}

const Filling& Outlook::filling(int device_class, std::size_t cpu_price) const {
  return fillings_[at(device_class) * cpu_prices_.size() + cpu_price];
}

constexpr std::size_t kLevelRows = Filling::kLevels + 1;  ///< of one class in worths_, before those of tiers
constexpr std::size_t kTierRows = Filling::kMaxIdle + 1;

void Outlook::flatten(bool with_unplanned) {
  const auto prices = cpu_prices_.size();
  std::size_t rows = 0;
  for (auto& device_class : classes_) {
    device_class.first_row = rows;
    rows += kLevelRows + kTierRows * (device_class.multiples.size() + 1);
  }
  worths_.resize(rows * prices);
  for (std::size_t i = 0; i < fillings_.size(); ++i) {
    const auto& device_class = classes_[i / prices];
    auto* next = &worths_[device_class.first_row * prices + i % prices];
    const auto write = [&](double worth) {
      *next = worth;
      next += prices;
    };
    for (int level = 0; level <= Filling::kLevels; ++level) write(fillings_[i].worth(level));
    const auto wasted =
        with_unplanned ? std::min(kUnplanned * fillings_[i].expected_loss(), kMostUnplanned) : 0;
    for (std::size_t tier = 0; tier <= device_class.multiples.size(); ++tier)
      for (int idle = 0; idle <= Filling::kMaxIdle; ++idle)
        write(fillings_[i].idle_worth(idle, tier) - idle * wasted);
  }
}

const double* Outlook::worths(const Part& part) const {
  const auto& device_class = classes_[at(part.device_class)];
  const auto row = part.idle > 0 ? kLevelRows + kTierRows * part.tier + at(part.idle) : at(part.level);
  return &worths_[(device_class.first_row + row) * cpu_prices_.size()];
}

double Outlook::cpus_used(const Room& room, std::size_t cpu_price) const {
  double cpus = 0;
  for (const auto& part : room.parts) {
    const auto& weighed = filling(part.device_class, cpu_price);
    cpus += part.idle > 0 ? weighed.idle_cpus(part.idle, part.tier) : weighed.cpus(part.level);
  }
  return cpus;
}

Outlook::ByCpuPrice Outlook::worths(const Room& room) const {
  ByCpuPrice sums{};
  for (const auto& part : room.parts) {
    const auto* row = worths(part);
    for (std::size_t price = 0; price < sums.size(); ++price) sums[price] += row[price];
  }
  for (std::size_t price = 0; price < sums.size(); ++price)
    sums[price] += floored_prices_[price] * room.milli_cpus + outbid_[price];
  return sums;
}

double Outlook::worth(const NodeState& node) const {
  if (worths_.empty()) return 0;
  const auto sums = worths(room_of(node));
  // Four side by side: one after the other, each comparison would wait for the one before.
  constexpr std::size_t kLanes = 4;
  static_assert(kCpuPrices % kLanes == 0);
  std::array<double, kLanes> least;
  std::copy_n(sums.begin(), kLanes, least.begin());
  for (std::size_t price = kLanes; price < sums.size(); price += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) least[lane] = std::min(least[lane], sums[price + lane]);
  return *std::ranges::min_element(least);
}

/// The prices around the one at which the CPUs of the room are just used up, and how much of its demand is at
/// the first of them. CPUs that the GPUs do not need at the floor go to CPU-only requests.
Outlook::Split Outlook::split(const Room& room) const {
  const auto count = cpu_prices_.size();
  const auto sums = worths(room);
  auto first = static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin());
  auto second = first;
  const bool too_many = cpus_used(room, first) > room.milli_cpus;
  while (too_many ? second + 1 < count : second > 0) {
    second = too_many ? second + 1 : second - 1;
    if ((cpus_used(room, second) > room.milli_cpus) != too_many) break;
    first = second;
  }
  if (std::min(cpu_prices_[first], cpu_prices_[second]) < cpu_floor_) {
    const auto floor = std::ranges::lower_bound(cpu_prices_, cpu_floor_) - cpu_prices_.begin();
    first = second = std::min(static_cast<std::size_t>(floor), count - 1);
  }
  const auto above = cpus_used(room, first) - room.milli_cpus;
  const auto below = cpus_used(room, second) - room.milli_cpus;
  const auto share = above * below < 0 ? below / (below - above) : 1;
  return {first, second, share, std::max(0.0, -(share * above + (1 - share) * below))};
}

/// How often each typical request is placed under the present prices, and the CPUs that are left.
std::pair<std::vector<double>, double> Outlook::placed(const std::vector<Room>& rooms) const {
  std::vector<std::vector<double>> levels(fillings_.size());
  std::vector<std::vector<std::vector<double>>> idles(fillings_.size());  ///< [filling][tier][idle]
  const auto ask = [&](const Room& room, std::size_t price, double share) {
    for (const auto& part : room.parts) {
      const auto i = at(part.device_class) * cpu_prices_.size() + price;
      levels[i].resize(Filling::kLevels + 1);
      idles[i].resize(classes_[at(part.device_class)].multiples.size() + 1,
                      std::vector<double>(Filling::kMaxIdle + 1));
      (part.idle > 0 ? idles[i][part.tier][at(part.idle)] : levels[i][at(part.level)]) += share;
    }
  };
  double cpus_left = 0;
  for (const auto& room : rooms) {
    const auto demand = split(room);
    ask(room, demand.first, demand.share);
    if (demand.share < 1) ask(room, demand.second, 1 - demand.share);
    cpus_left += demand.cpus_left;
  }
  std::vector<double> used(typical_.size(), 0);
  for (std::size_t i = 0; i < fillings_.size(); ++i)
    if (!levels[i].empty()) fillings_[i].use(levels[i], idles[i], used);
  return {used, cpus_left};
}

/// Moves the prices against the gradient: what is placed oftener than it is expected gets cheaper.
void Outlook::step(const std::vector<Room>& rooms, double rate) {
  const auto [used, cpus_left] = placed(rooms);
  double cpus_expected = 0;
  for (const auto& typical : typical_)
    if (typical.shape->gpus() == 0)
      cpus_expected += typical.expected * static_cast<double>(typical.shape->request().milli_cpus);
  for (std::size_t i = 0; i < typical_.size(); ++i) {
    auto& typical = typical_[i];
    const auto reward = typical.reward;
    const auto expected = typical.expected;
    auto& price = typical.price;
    if (typical.shape->gpus() > 0) {
      const auto excess = std::clamp(std::log((used[i] + 0.1) / (expected + 0.1)), -2.0, 2.0);
      price = std::clamp(price - rate * kTemperature * excess, -10 * kTemperature, reward);
    } else if (cpus_expected > 0) {
      const auto excess = std::clamp((cpus_left - cpus_expected) / cpus_expected, -1.0, 1.0);
      price = std::clamp(price * std::exp(-rate * excess), 1e-9 * reward, reward);
    }
  }
}

}  // namespace drover::placement
