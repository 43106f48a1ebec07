#include "placement/weaker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/filter.h"
#include "placement/weaker_search.h"
#include "placement/words.h"
#include "workload/resource_fields.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMostMembersTried = 16;

/// Less near than `wanted`, nearest first; the last asks for nothing.
std::vector<Interconnect> less_near(const Interconnect& wanted) {
  using gpu::PcieLevel;
  std::vector<Interconnect> levels;
  if (wanted.max_pcie == PcieLevel::kUnknown)
    for (int links = wanted.min_nvlinks - 1; links > 0; --links)
      levels.push_back({links, PcieLevel::kUnknown});
  for (const auto level :
       {PcieLevel::kSwitch, PcieLevel::kSwitches, PcieLevel::kHostBridge, PcieLevel::kSameNuma})
    if (wanted.max_pcie == PcieLevel::kUnknown || level > wanted.max_pcie) levels.push_back({0, level});
  levels.emplace_back();
  return levels;
}

}  // namespace

Gang WeakerSearch::with(const Change& change) const {
  auto changed = gang_;
  for (auto& member : changed.members) change(member);
  return changed;
}

std::optional<std::vector<Decision>> WeakerSearch::start_of(const Gang& gang) const {
  if (gang == gang_ || !validate(gang)) return std::nullopt;
  return start_of_(gang);
}

bool WeakerSearch::try_it(const std::string& remedy, const Gang& gang) {
  if (found_.size() >= most_ || !starts(gang)) return false;
  found_.push_back({remedy, gang});
  return true;
}

void WeakerSearch::relax_preferences() {
  const auto asks =
      std::ranges::find_if(gang_.members, [](const Request& member) { return member.interconnect.asks(); });
  if (asks != gang_.members.end())
    for (const auto& level : less_near(asks->interconnect)) {
      const auto remedy = fmt::format("be content with the interconnect '{}'", to_string(level));
      if (try_it(remedy, with([&](Request& request) {
                   if (request.interconnect.asks()) request.interconnect = level;
                 })))
        break;
    }
  try_it("prefer CPUs near the GPUs instead of requiring them", with([](Request& request) {
           if (request.cpu_affinity == Preference::kRequire) request.cpu_affinity = Preference::kPrefer;
         }));
  try_it("prefer a network card near the GPUs instead of requiring one", with([](Request& request) {
           if (request.nic == Preference::kRequire) request.nic = Preference::kPrefer;
         }));
  if (gang_.arrangement != Arrangement::kSpread) return;
  auto anywhere = gang_;
  anywhere.arrangement = Arrangement::kAny;
  try_it("be content with the arrangement 'any'", anywhere);
}

/// Of what would be given, those that were not asked for; all, when all were.
std::string WeakerSearch::models(const std::vector<Decision>& decisions) const {
  std::set<std::string> all;
  std::set<std::string> others;
  for (std::size_t rank = 0; rank < decisions.size(); ++rank)
    for (const auto& device : cluster_.node(decisions[rank].node)->inventory.devices) {
      if (std::ranges::find(decisions[rank].gpus, device.uuid, &Grant::uuid) == decisions[rank].gpus.end())
        continue;
      all.insert(device.model);
      const auto asked = [&](const DeviceClaim& claim) {
        return std::ranges::any_of(claim.filter.models,
                                   [&](const auto& model) { return model_matches(model, device.model); });
      };
      if (std::ranges::none_of(gang_.members[rank].gpus, asked)) others.insert(device.model);
    }
  const auto& told = others.empty() ? all : others;
  return list_text({told.begin(), told.end()}, "and");
}

void WeakerSearch::try_filter(void (*change)(DeviceFilter&), const char* remedy) {
  if (found_.size() >= most_) return;
  auto changed = with([&](Request& request) {
    for (auto& claim : request.gpus) change(claim.filter);
  });
  if (const auto start = start_of(changed))
    found_.push_back({fmt::format("{}: {}", remedy, models(*start)), std::move(changed)});
}

void WeakerSearch::try_older_driver() {
  if (found_.size() >= most_) return;
  auto changed = with([](Request& request) {
    for (auto& claim : request.gpus) claim.filter.min_driver.clear();
  });
  const auto start = start_of(changed);
  if (!start) return;
  std::set<std::string> drivers;
  for (const auto& decision : *start)
    if (!decision.gpus.empty()) drivers.insert(cluster_.node(decision.node)->inventory.driver_version);
  found_.push_back({"be content with an older driver: " + list_text({drivers.begin(), drivers.end()}, "and"),
                    std::move(changed)});
}

void WeakerSearch::give_up_kinds() {
  const bool ecc = std::ranges::any_of(
      first().gpus, [](const DeviceClaim& claim) { return claim.filter.ecc.value_or(false); });
  try_it("be content with GPUs of one model",
         with([](Request& request) { request.different_models = false; }));
  try_filter([](DeviceFilter& filter) { filter.models.clear(); }, "be content with GPUs of another model");
  try_filter([](DeviceFilter& filter) { filter.min_memory_bytes = 0; },
             "be content with GPUs of less memory");
  try_filter([](DeviceFilter& filter) { filter.min_compute_capability.reset(); },
             "be content with GPUs of a lower compute capability");
  try_filter([](DeviceFilter& filter) { filter.ecc.reset(); },
             ecc ? "be content with GPUs without ECC" : "be content with GPUs with ECC");
  try_older_driver();
}

void WeakerSearch::give_up_attributes() {
  std::map<std::string, std::vector<std::string>> asked;
  for (const auto& member : gang_.members)
    for (const auto& attribute : member.attributes) asked.emplace(attribute.name, attribute.any_of);
  for (const auto& [name, values] : asked)
    try_it(fmt::format("do not ask for the attribute {}={}", name, list_text(values, "or")),
           with([&left_out = name](Request& request) {
             std::erase_if(request.attributes,
                           [&](const AttributeConstraint& attribute) { return attribute.name == left_out; });
           }));
}

std::vector<Weaker> weaker_that_start(const Cluster& cluster, const Gang& gang, const StartOf& start_of,
                                      std::size_t most) {
  if (gang.members.empty() || gang.members.size() > kMostMembersTried) return {};
  WeakerSearch search(cluster, gang, start_of, most);
  search.relax_preferences();
  search.give_up_kinds();
  search.give_up_attributes();
  search.ask_for_less();
  if (!search.found()) search.ask_for_less_of_all();
  return search.take();
}

}  // namespace drover::placement
