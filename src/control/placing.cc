#include "control/placing.h"

#include <algorithm>
#include <utility>

#include "control/holds.h"
#include "control/node_rules.h"

namespace drover::control {
namespace {

constexpr int kAnyPorts = kLastPort - kFirstPort + 1;

/// Of those that people may be given, beginning somewhere.
int port_from(std::uint64_t salt) {
  return kFirstPort + static_cast<int>(salt % kAnyPorts);
}

/// Each task has an address of its own there, so a port that is not named is any number that it has not yet;
/// 0 when there are more than the range has, which no pod can have.
std::vector<int> ports_of(const workload::Network& network, std::uint64_t salt) {
  std::set<int> taken;
  for (const auto& port : network.ports) taken.insert({port.host_port, port.container_port});
  std::vector<int> ports;
  int tried = 0;
  for (const auto& port : network.ports) {
    int number = port.host_port != 0 ? port.host_port : port.container_port;
    while (number == 0 && tried < kAnyPorts)
      if (const int next = port_from(salt + static_cast<std::uint64_t>(tried++)); taken.insert(next).second)
        number = next;
    ports.push_back(number);
  }
  return ports;
}

void ask(Draft& draft, const std::string& id) {
  auto& record = draft.change(id);
  record.asked = true;
  record.retry_at.reset();
  record.set = set_of(draft, record);
  record.ports = ports_of(record.task.network, record.sequence);
  if (const auto& gang = record.task.gang)
    // The first member has an address of its own too.
    record.gang_port = port_from(draft.find(member_id(gang->id, 0))->sequence);
  draft.act(action::Launch{id, node_rules(draft, record)});
}

}  // namespace

void ask_for_places(Draft& draft) {
  auto [jobs, behind, held_back] = draft.waiting();
  QueuePositions positions;
  std::ranges::sort(jobs, {}, &placement::Job::sequence);
  for (const auto& job : jobs) {
    positions.order.push_back(job.id);
    for (const auto* member : members_of_job(job.id, draft.finder()))
      if (!member->asked) ask(draft, member->task.id);
  }
  for (auto& [sequence, id] : behind) {
    positions.order.push_back(std::move(id));
    positions.behind.push_back(sequence);
  }
  std::ranges::move(held_back, std::back_inserter(positions.order));
  draft.set_positions(std::move(positions));
}

void placed(Draft& draft, const event::Placed& event) {
  const auto& known = *draft.find(event.id);
  if (known.state == TaskState::kStopping || !known.node.empty()) return;
  auto& record = draft.change(event.id);
  if (record.state == TaskState::kQueued) {
    record.state = TaskState::kStarting;
    record.asked = false;
    record.reason.clear();
  }
  record.node = event.node;
  record.gpus = event.gpus;
}

}  // namespace drover::control
