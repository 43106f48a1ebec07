#include "control/holds.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/constraints.h"
#include "control/instances.h"

namespace drover::control {
namespace {

constexpr int kPorts = kLastPort - kFirstPort + 1;

MachineAttributes attributes_of(const placement::Node& machine) {
  MachineAttributes attributes = machine.attributes;
  attributes["hostname"] = {machine.name};
  return attributes;
}

}  // namespace

PortsInUse::PortsInUse(const Draft& draft) : foreign_(draft.machine().foreign_ports), taken_(foreign_) {
  for (const auto* record : draft.active()) {
    taken_.insert(record->ports.begin(), record->ports.end());
    if (record->gang_port != 0) taken_.insert(record->gang_port);
  }
}

std::size_t PortsInUse::free() const {
  const auto first = taken_.lower_bound(kFirstPort), last = taken_.upper_bound(kLastPort);
  return static_cast<std::size_t>(kPorts) - static_cast<std::size_t>(std::distance(first, last));
}

std::optional<int> PortsInUse::take_any(std::uint64_t salt) {
  const int begin = static_cast<int>(salt % kPorts);
  for (int i = 0; i < kPorts; ++i)
    if (const int port = kFirstPort + (begin + i) % kPorts; taken_.insert(port).second) return port;
  return std::nullopt;
}

void PortsInUse::take_named(const workload::Network& network) {
  for (const auto& port : network.ports)
    if (port.host_port != 0) taken_.insert(port.host_port);
}

std::vector<int> PortsInUse::take_for(const workload::Network& network, std::uint64_t salt) {
  std::vector<int> ports;
  take_named(network);
  for (const auto& port : network.ports)
    ports.push_back(port.host_port != 0 ? port.host_port : take_any(salt).value_or(0));
  return ports;
}

std::optional<std::string> Holds::claim(const std::vector<const TaskRecord*>& members) {
  for (const auto* member : members) {
    if (auto why = image_refusal(*member)) return why;
    if (auto why = port_refusal(*member)) return why;
    if (auto why = constraint_refusal(*member)) return why;
  }
  for (const auto* member : members) {
    ports_.take_named(member->task.network);
    // Which ones the others are is settled when they start.
    any_claimed_ += static_cast<std::size_t>(
        std::ranges::count(member->task.network.ports, 0, &workload::Port::host_port));
    if (member->task.origin.kind == workload::OriginKind::kService) ++claimed_[member->task.origin.name];
  }
  return std::nullopt;
}

std::optional<std::string> Holds::image_refusal(const TaskRecord& record) const {
  const auto* fit = find_fit(draft_.images(), record.task);
  if (fit == nullptr) return std::nullopt;
  if (fit->pending) return "its image is being looked at";
  return refusal(*fit, record.task);
}

std::optional<std::string> Holds::port_refusal(const TaskRecord& record) {
  std::size_t any = 0;
  for (const auto& port : record.task.network.ports) {
    if (port.host_port == 0) ++any;
    if (port.host_port != 0 && ports_.has(port.host_port))
      return fmt::format("it wants the port {} of this machine, which another {} has", port.host_port,
                         ports_.is_foreign(port.host_port) ? "program" : "task");
  }
  if (any_claimed_ + any <= ports_.free()) return std::nullopt;
  return fmt::format("no port from {} to {} is free", kFirstPort, kLastPort);
}

std::optional<std::string> Holds::constraint_refusal(const TaskRecord& record) {
  if (record.task.origin.kind != workload::OriginKind::kService) return std::nullopt;
  const auto* service = draft_.services.find(record.task.origin.name);
  const auto* definition = service == nullptr ? nullptr : definition_of(*service, record);
  if (definition == nullptr || definition->constraints.empty()) return std::nullopt;
  const auto machine = attributes_of(draft_.machine());
  int running = claimed_[record.task.origin.name];
  for (const auto* other : draft_.tasks_of(origin_of(record.task)))
    if (owns_resources(other->state)) ++running;
  const std::vector<MachineAttributes> others(static_cast<std::size_t>(running), machine);
  for (const auto& constraint : definition->constraints)
    if (auto why = refusal(constraint, machine, others)) return why;
  return std::nullopt;
}

}  // namespace drover::control
