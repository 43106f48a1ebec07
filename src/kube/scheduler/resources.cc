#include "kube/scheduler/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/scheduler/labels.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr Nanos kNanosInOne = 1'000'000'000;
constexpr Nanos kNanosInThousandth = 1'000'000;

std::int64_t rounded_up(Nanos nanos, Nanos unit) {
  constexpr auto kMost = static_cast<Nanos>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(kMost, (nanos + unit - 1) / unit));
}

std::int64_t sum_of(std::int64_t one, std::int64_t other) {
  return rounded_up(static_cast<Nanos>(one) + static_cast<Nanos>(other), 1);
}

void add_up(Quantities& sum, const Quantities& quantities) {
  for (const auto& [name, quantity] : quantities) sum[name] += quantity;
}

void raise_to(Quantities& most, const Quantities& quantities) {
  for (const auto& [name, quantity] : quantities) {
    auto& value = most[name];
    value = std::max(value, quantity);
  }
}

bool is_of_whole_pods(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

constexpr ServerVersion kCountsWholePods{1, 37};

/// A pod that is being read, and how far the kubelet is with a change of its resources.
class Requests {
 public:
  Requests(FieldReader& reader, const json& pod)
      : reader_(reader), spec_(reader.object(pod, "spec")), status_(reader.object(pod, "status")) {}

  /// As long as no kubelet has it.
  Quantities asked() {
    return whole_pod(of_containers([&](const json& container, bool) { return spec_of(container); }),
                     reader_.quantities(reader_.object(spec_, "resources"), "requests"));
  }

  Quantities taken(const ServerVersion& version) {
    for (const auto* const list : {"containerStatuses", "initContainerStatuses"})
      for (const auto& status : reader_.objects(status_, list))
        containers_[reader_.text(status, "name")] = &status;
    for (const auto& condition : reader_.objects(status_, "conditions")) {
      if (reader_.text(condition, "type") != "PodResizePending") continue;
      infeasible_ = reader_.text(condition, "reason") == "Infeasible";
      break;
    }
    return version < kCountsWholePods ? taken_by_containers() : taken_by_pod();
  }

 private:
  /// What is larger of each is taken by container, …
  Quantities taken_by_containers() {
    auto requests = of_containers([&](const json& container, bool runs_on) {
      const auto& status = status_of(container);
      const auto& actual = reader_.object(status, "resources");
      if (!runs_on || actual.is_null()) return spec_of(container);
      return most(spec_of(container), reader_.quantities(actual, "requests"),
                  reader_.quantities(status, "allocatedResources"));
    });
    auto whole = reader_.quantities(reader_.object(spec_, "resources"), "requests");
    auto now = of_whole_pod(whole);
    for (auto& [name, quantity] : whole) quantity = now[name];
    return whole_pod(std::move(requests), whole);
  }

  /// … or, since Kubernetes 1.37, of the sums of all containers.
  Quantities taken_by_pod() {
    const auto asked = of_containers([&](const json& container, bool) { return spec_of(container); });
    const auto& actual = reader_.object(status_, "resources");
    const bool by_pod = reader_.object(status_, "allocatedResources").is_object() &&
                        reader_.object(actual, "requests").is_object();
    auto allocated = reader_.quantities(status_, "allocatedResources");
    auto actuated = reader_.quantities(actual, "requests");
    if (!by_pod) {
      allocated = of_containers([&](const json& container, bool) { return allocated_of(container); });
      actuated = of_containers([&](const json& container, bool) {
        const auto& used = reader_.object(status_of(container), "resources");
        return reader_.object(used, "requests").is_object() ? reader_.quantities(used, "requests")
                                                            : allocated_of(container);
      });
    }
    const auto whole = reader_.quantities(reader_.object(spec_, "resources"), "requests");
    return whole_pod(most(asked, actuated, allocated),
                     std::ranges::any_of(whole, [](const auto& item) { return is_of_whole_pods(item.first); })
                         ? of_whole_pod(whole)
                         : Quantities());
  }

  template <typename Of>
  Quantities of_containers(Of of) {
    Quantities requests;
    for (const auto& container : reader_.objects(spec_, "containers")) add_up(requests, of(container, true));
    Quantities sidecars;
    Quantities largest;
    for (const auto& container : reader_.objects(spec_, "initContainers")) {
      const auto is_sidecar = reader_.text(container, "restartPolicy") == "Always";
      auto request = of(container, is_sidecar);
      if (is_sidecar) add_up(requests, request);
      add_up(request, sidecars);
      if (is_sidecar) sidecars = request;
      raise_to(largest, request);
    }
    raise_to(requests, largest);
    return requests;
  }

  const json& status_of(const json& container) {
    static const json none;
    const auto found = containers_.find(reader_.text(container, "name"));
    return found == containers_.end() ? none : *found->second;
  }
  Quantities spec_of(const json& container) {
    return reader_.quantities(reader_.object(container, "resources"), "requests");
  }
  Quantities allocated_of(const json& container) {
    const auto& status = status_of(container);
    if (reader_.object(status, "allocatedResources").is_object())
      return reader_.quantities(status, "allocatedResources");
    return infeasible_ ? Quantities() : spec_of(container);
  }

  /// What is asked for the whole pod, or is still in use or allotted.
  Quantities of_whole_pod(const Quantities& asked) {
    const auto& actual = reader_.object(status_, "resources");
    if (actual.is_null()) return asked;
    return most(asked, reader_.quantities(actual, "requests"),
                reader_.quantities(status_, "allocatedResources"));
  }

  Quantities most(Quantities asked, const Quantities& actuated, const Quantities& allocated) const {
    if (infeasible_) asked.clear();
    raise_to(asked, actuated);
    raise_to(asked, allocated);
    return asked;
  }

  Quantities whole_pod(Quantities requests, const Quantities& whole) {
    for (const auto& [name, quantity] : whole)
      if (is_of_whole_pods(name)) requests[name] = quantity;
    add_up(requests, reader_.quantities(spec_, "overhead"));
    return requests;
  }

  FieldReader& reader_;
  const json& spec_;
  const json& status_;
  bool infeasible_ = false;
  std::map<std::string, const json*> containers_;
};

}  // namespace

bool is_counted(std::string_view name) {
  if (name.starts_with("hugepages-") || name.starts_with("attachable-volumes-") ||
      name.find("kubernetes.io/") != std::string_view::npos)
    return true;
  return name.find('/') != std::string_view::npos && !name.starts_with("requests.") &&
         is_qualified_name(fmt::format("requests.{}", name));
}

Resources whole(const Quantities& quantities) {
  Resources resources;
  for (const auto& [name, quantity] : quantities) {
    if (name == "cpu")
      resources.cpu = rounded_up(quantity, kNanosInThousandth);
    else if (name == "memory")
      resources.memory = rounded_up(quantity, kNanosInOne);
    else if (name == "ephemeral-storage")
      resources.storage = rounded_up(quantity, kNanosInOne);
    else if (is_counted(name))
      resources.others.emplace(name, rounded_up(quantity, kNanosInOne));
  }
  return resources;
}

void add(Resources& sum, const Resources& resources) {
  sum.cpu = sum_of(sum.cpu, resources.cpu);
  sum.memory = sum_of(sum.memory, resources.memory);
  sum.storage = sum_of(sum.storage, resources.storage);
  for (const auto& [name, amount] : resources.others) {
    auto& others = sum.others[name];
    others = sum_of(others, amount);
  }
}

std::vector<ContainerResources> read_container_resources(FieldReader& reader, const json& pod) {
  std::vector<ContainerResources> containers;
  const auto& spec = reader.object(pod, "spec");
  for (const auto* const list : {"initContainers", "containers"})
    for (const auto& given : reader.objects(spec, list)) {
      auto& container = containers.emplace_back();
      container.name = reader.text(given, "name");
      container.passes =
          list == std::string_view("initContainers") && reader.text(given, "restartPolicy") != "Always";
      for (const auto& [name, amount] : reader.quantities(reader.object(given, "resources"), "requests")) {
        container.names.push_back(name);
        if (amount % kNanosInOne == 0 && amount != 0)
          container.amounts.emplace(name, static_cast<std::int64_t>(amount / kNanosInOne));
      }
    }
  return containers;
}

Resources read_requests(FieldReader& reader, const json& pod, const ServerVersion* assigned) {
  Requests requests(reader, pod);
  return whole(assigned != nullptr ? requests.taken(*assigned) : requests.asked());
}

}  // namespace drover::kube::scheduler
