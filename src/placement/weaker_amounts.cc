#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "placement/weaker_search.h"
#include "placement/words.h"

namespace drover::placement {

/// Something that can be asked for in a smaller amount.
struct WeakerSearch::Amount {
  std::int64_t (*of)(const Request&);  ///< 0: it is not asked for, or not in one number
  void (*set)(Request&, std::int64_t);
  std::string (*text)(std::int64_t);
  std::vector<std::int64_t> units;  ///< it is told in multiples of the first, or else of the next
};

namespace {

using Amount = WeakerSearch::Amount;

constexpr std::int64_t kMiB = 1LL << 20;
constexpr std::int64_t kGiB = 1LL << 30;

std::int64_t gpus_of(const Request& request) {
  return request.gpus.size() == 1 ? request.gpu_count() : 0;
}

/// Exact, so that it can be asked for as it stands: not "1.5 TiB".
std::string bytes_text(std::int64_t bytes) {
  return bytes % kGiB == 0 ? fmt::format("{} GiB", bytes / kGiB) : fmt::format("{} MiB", bytes / kMiB);
}

const Amount kGpusAsked = {
    gpus_of,
    [](Request& request, std::int64_t count) { set_gpus(request, static_cast<int>(count)); },
    gpus_text,
    {1}};
const Amount kShare = {
    [](const Request& request) {
      return request.gpus.empty() || request.share.memory_bytes > 0 ? 0 : std::int64_t{request.share.milli};
    },
    [](Request& request, std::int64_t milli) { request.share.milli = static_cast<int>(milli); },
    [](std::int64_t milli) { return "a share of " + milli_text(milli); },
    {10, 1}};
const Amount kShareOfMemory = {
    [](const Request& request) { return static_cast<std::int64_t>(request.share.memory_bytes); },
    [](Request& request, std::int64_t bytes) {
      request.share.memory_bytes = static_cast<std::uint64_t>(bytes);
    },
    [](std::int64_t bytes) { return "a share of " + bytes_text(bytes); },
    {kGiB, kMiB}};
const Amount kCpusAsked = {
    [](const Request& request) { return request.milli_cpus; },
    [](Request& request, std::int64_t milli) { request.milli_cpus = milli; },
    [](std::int64_t milli) { return cpus_text(milli) + (milli == 1000 ? " CPU" : " CPUs"); },
    {100}};
const Amount kMemoryAsked = {
    [](const Request& request) { return static_cast<std::int64_t>(request.memory_bytes); },
    [](Request& request, std::int64_t bytes) { request.memory_bytes = static_cast<std::uint64_t>(bytes); },
    [](std::int64_t bytes) { return bytes_text(bytes) + " of memory"; },
    {kGiB, kMiB}};

/// What has to be left out with it, in words.
std::string left_out(const Request& before, const Request& after) {
  std::vector<std::string> things;
  if (before.interconnect.asks() && !after.interconnect.asks()) things.emplace_back("for no interconnect");
  if (before.different_models && !after.different_models) things.emplace_back("not for different models");
  return things.empty() ? "" : ", and " + list_text(things, "and");
}

/// The largest in [1, below) that holds; the smaller, the easier it is to hold.
std::optional<std::int64_t> largest(std::int64_t below, const std::function<bool(std::int64_t)>& holds) {
  std::int64_t yes = 0;
  for (auto no = below; no - yes > 1;) {
    const auto middle = yes + (no - yes) / 2;
    (holds(middle) ? yes : no) = middle;
  }
  return yes > 0 ? std::optional(yes) : std::nullopt;
}

/// The most that holds of what can be told and is below `now`.
std::optional<std::int64_t> most_below(std::int64_t now, const Amount& amount,
                                       const std::function<bool(std::int64_t)>& holds) {
  for (const auto unit : amount.units)
    if (const auto count = largest((now + unit - 1) / unit, [&](auto times) { return holds(times * unit); }))
      return *count * unit;
  return std::nullopt;
}

}  // namespace

void WeakerSearch::try_less(const Amount& amount) {
  if (found_.size() >= most_) return;
  const auto asking = [&](std::int64_t value) {
    return with([&](Request& request) { amount.set(request, value); });
  };
  const auto most =
      most_below(amount.of(first()), amount, [&](std::int64_t value) { return starts(asking(value)); });
  if (!most) return;
  auto gang = asking(*most);
  found_.push_back(
      {"ask for " + amount.text(*most) + each() + left_out(first(), gang.members.front()), std::move(gang)});
}

void WeakerSearch::ask_for_less() {
  if (!alike(gang_)) return;
  for (const auto* amount : {&kGpusAsked, &kCpusAsked, &kMemoryAsked, &kShareOfMemory}) try_less(*amount);
  if (!first().share.whole()) try_less(kShare);
  try_smaller_gang();
  if (!found()) try_less(kShare);  // who wants whole GPUs wants parts only when nothing else is to be had
}

void WeakerSearch::try_smaller_gang() {
  if (found_.size() >= most_) return;
  const auto of_size = [this](std::int64_t size) {
    auto smaller = gang_;
    smaller.members.resize(static_cast<std::size_t>(size));
    return smaller;
  };
  const auto size = static_cast<std::int64_t>(gang_.members.size());
  if (const auto most = largest(size, [&](auto count) { return starts(of_size(count)); }))
    found_.push_back({fmt::format("make it a gang of {}", *most), of_size(*most)});
}

void WeakerSearch::ask_for_less_of_all() {
  if (!alike(gang_)) return;
  const std::array amounts = {&kGpusAsked, &kCpusAsked, &kMemoryAsked};
  std::array<std::int64_t, amounts.size()> values{};
  const auto asking = [&] {
    return with([&](Request& request) {
      for (std::size_t i = 0; i < amounts.size(); ++i)
        if (values[i] > 0) amounts[i]->set(request, values[i]);
    });
  };
  for (std::size_t i = 0; i < amounts.size(); ++i)
    values[i] = std::min(amounts[i]->of(first()), amounts[i]->units.back());
  if (!starts(asking())) return;
  // As much as can be had of the first, then of the next.
  std::vector<std::string> told;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    const auto wanted = amounts[i]->of(first());
    const auto least = std::exchange(values[i], wanted);
    if (wanted == 0 || starts(asking())) continue;
    values[i] = most_below(wanted, *amounts[i], [&](std::int64_t value) {
                  values[i] = value;
                  return starts(asking());
                }).value_or(least);
    told.push_back(amounts[i]->text(values[i]));
  }
  auto gang = asking();
  found_.push_back({"ask for " + list_text(told, "and") + each() + left_out(first(), gang.members.front()),
                    std::move(gang)});
}

}  // namespace drover::placement
