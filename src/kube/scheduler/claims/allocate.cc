#include "kube/scheduler/claims/allocate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/ids.h"
#include "kube/scheduler/claims/search.h"

namespace drover::kube::scheduler {
namespace {

using Claims = std::vector<const ResourceClaim*>;

/// All that the pod has: one that is made for limits has no name yet, and is the last.
Search::Numbers numbers_of(const Claims& claims) {
  const auto own = std::ranges::count_if(claims, [](const auto* claim) { return !claim->name.empty(); });
  return {0, static_cast<std::size_t>(own)};
}

Status may_ask(const Claims& claims, const AllocateOptions& options) {
  if (options.admin_access) return {};
  for (std::size_t i = 0; i < claims.size(); ++i)
    for (const auto& request : claims[i]->spec->requests)
      if (std::ranges::any_of(request.wishes, &DeviceWish::admin))
        return fail(ErrorKind::kPermissionDenied,
                    fmt::format("{} asks for admin access, which its namespace does not allow",
                                Search::words_of(*claims[i], i, numbers_of(claims))),
                    "an administrator allows it by the namespace's label "
                    "resource.kubernetes.io/admin-access: \"true\"");
  return {};
}

/// The first ones as numbers of candidates.
std::vector<std::size_t> order_of(const NodeDevices& devices, const std::vector<DeviceId>& first) {
  std::vector<std::size_t> order;
  if (first.empty()) return order;
  std::map<DeviceId, std::size_t> numbers;
  for (std::size_t i = 0; i < devices.candidates().size(); ++i)
    numbers.emplace(devices.candidates()[i].id(), i);
  for (const auto& id : first)
    if (const auto found = numbers.find(id);
        found != numbers.end() && std::ranges::find(order, found->second) == order.end())
      order.push_back(found->second);
  return order;
}

using Outcome = Search::Outcome;
using ChosenByClaim = std::vector<std::vector<Chosen>>;

/// First as Kubernetes does it, which says whether there is a way, and with which of a request's wishes.
Outcome find(Search& search, const AllocateOptions& options, ChosenByClaim& chosen) {
  const auto outcome = search.run(options.most_tries);
  if (outcome != Outcome::kFound) return outcome;
  chosen = search.chosen();
  const auto order = order_of(search.devices(), options.first);
  if (order.empty()) return outcome;
  for (const auto only : {true, false})
    if (search.run_again(order, only, options.most_tries) == Outcome::kFound) {
      chosen = search.chosen();
      break;
    }
  return outcome;
}

void add_requirements(std::vector<Requirement>& sum, const std::vector<Requirement>& added) {
  const auto same = [](Requirement one, Requirement other) {
    std::ranges::sort(one.values);
    std::ranges::sort(other.values);
    return one == other;
  };
  for (const auto& requirement : added)
    if (std::ranges::none_of(sum, [&](const auto& known) { return same(known, requirement); }))
      sum.push_back(requirement);
}

/// On which nodes all of the devices can be had.
std::optional<NodeTerms> nodes_of(const std::vector<Chosen>& chosen, const NodeDevices& devices,
                                  const Node& node) {
  NodeTerm term;
  for (const auto& [choice, candidate] : chosen) {
    const auto& [pool, slice, device, here, taints, use, claims, shares] = devices.candidates()[candidate];
    const auto& nodes = device->nodes ? *device->nodes : slice->nodes;
    if (!nodes.node_name.empty() || device->binds_to_node)
      return NodeTerms{{true, {}, {{"metadata.name", LabelOperator::kIn, {node.name}}}}};
    if (!nodes.terms || nodes.terms->empty()) continue;
    add_requirements(term.labels, nodes.terms->front().labels);
    add_requirements(term.fields, nodes.terms->front().fields);
  }
  if (term.labels.empty() && term.fields.empty()) return std::nullopt;
  return NodeTerms{std::move(term)};
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

/// Those of classes, each once, and then those of the claim.
std::vector<AllocatedConfig> configs_of(const ResourceClaim& claim,
                                        const std::vector<const Choice*>& choices) {
  std::vector<AllocatedConfig> configs;
  std::map<const DeviceClass*, std::vector<std::string>> requests;
  std::vector<const DeviceClass*> classes;
  for (const auto* choice : choices) {
    auto& names = requests[choice->device_class];
    if (names.empty()) classes.push_back(choice->device_class);
    names.push_back(choice->full_name);
  }
  for (const auto* device_class : classes)
    for (const auto& config : device_class->configs)
      configs.push_back({true, requests[device_class], config});
  const auto concerns = [&](const std::vector<std::string>& named, const Choice& choice) {
    return contains(named, claim.spec->requests[choice.request].name) || contains(named, choice.full_name);
  };
  for (const auto& config : claim.spec->configs)
    if (config.requests.empty() ||
        std::ranges::any_of(choices, [&](const auto* choice) { return concerns(config.requests, *choice); }))
      configs.push_back({false, config.requests, config.config});
  for (auto& config : configs)
    if (std::ranges::all_of(choices, [&](const auto* choice) { return concerns(config.requests, *choice); }))
      config.requests.clear();
  return configs;
}

AllocatedDevice result_of(const ResourceClaim& claim, const Chosen& chosen, const Candidate& candidate,
                          std::size_t number) {
  const auto& choice = *chosen.choice;
  AllocatedDevice device{choice.full_name, candidate.id(), choice.wish->admin, choice.wish->tolerations_json};
  if (!candidate.kind().shared) return device;
  device.share_id = uuid_named(fmt::format("{}/{}/{}", claim.uid, to_string(device.id), number));
  device.consumed = choice.shares.at(chosen.candidate);
  return device;
}

std::vector<ClaimAllocation> results_of(const Search& search, const ChosenByClaim& all_chosen,
                                        const Node& node, const Claims& claims) {
  std::vector<ClaimAllocation> allocations;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    auto& allocation = allocations.emplace_back();
    for (const auto& chosen : all_chosen[i])
      allocation.devices.push_back(result_of(
          *claims[i], chosen, search.devices().candidates()[chosen.candidate], allocation.devices.size()));
    std::vector<const Choice*> choices;
    for (std::size_t request = 0; request < search.chosen_wishes()[i].size(); ++request)
      choices.push_back(&search.choices()[i][request][search.chosen_wishes()[i][request]]);
    allocation.configs = configs_of(*claims[i], choices);
    allocation.nodes = nodes_of(all_chosen[i], search.devices(), node);
  }
  return allocations;
}

Result<Allocated> allocate(const DevicePools& pools, const Node& node, const Claims& claims,
                           const Search::Numbers& numbers, const AllocateOptions& options) {
  DROVER_TRY(auto search, Search::prepare(pools, node, claims, numbers));
  ChosenByClaim chosen;
  switch (find(search, options, chosen)) {
    case Outcome::kFound:
      return Allocated{results_of(search, chosen, node, claims), ""};
    case Outcome::kStopped:
      if (search.error() != nullptr) return Failure(*search.error());
      // One that cannot be had even alone says more.
      if (claims.size() > 1)
        for (std::size_t i = 0; i < claims.size(); ++i)
          if (auto alone = allocate(pools, node, {claims[i]}, {i, numbers.of}, options);
              alone && !alone->fits())
            return alone;
      return Allocated{{}, fmt::format("no devices were found within {} tries", options.most_tries)};
    default:
      return Allocated{{}, search.reason()};
  }
}

}  // namespace

Result<Allocated> allocate(const DevicePools& pools, const Node& node, const Claims& claims,
                           const AllocateOptions& options) {
  DROVER_CHECK_OK(may_ask(claims, options));
  return allocate(pools, node, claims, numbers_of(claims), options);
}

Result<std::vector<std::vector<Eligible>>> eligible_devices(const DevicePools& pools, const Node& node,
                                                            const Claims& claims,
                                                            const AllocateOptions& options) {
  DROVER_CHECK_OK(may_ask(claims, options));
  DROVER_TRY(auto search, Search::prepare(pools, node, claims, numbers_of(claims)));
  std::vector<std::vector<Eligible>> eligible;
  for (const auto& by_request : search.choices()) {
    auto& of_claim = eligible.emplace_back();
    for (const auto& by_wish : by_request)
      for (const auto& choice : by_wish) {
        auto& wish = of_claim.emplace_back(Eligible{choice.full_name, choice.wish->all, choice.count});
        for (std::size_t i = 0; i < choice.matches.size(); ++i)
          if (search.could_have(choice, i)) wish.devices.push_back(search.devices().candidates()[i].id());
      }
  }
  return eligible;
}

}  // namespace drover::kube::scheduler
