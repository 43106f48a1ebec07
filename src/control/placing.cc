#include "control/placing.h"

#include <algorithm>
#include <utility>

#include "control/holds.h"

namespace drover::control {
namespace {

/// Each task has an address of its own there, so a port that is not named is any number that it has not yet.
std::vector<int> ports_of(const workload::Network& network, std::uint64_t salt) {
  constexpr auto kRange = static_cast<std::uint64_t>(kLastPort - kFirstPort + 1);
  std::set<int> named;
  for (const auto& port : network.ports) named.insert(port.host_port);
  std::vector<int> ports;
  for (const auto& port : network.ports) {
    auto number = port.host_port != 0 ? port.host_port : port.container_port;
    while (number == 0 || (port.host_port == 0 && port.container_port == 0 && named.contains(number)))
      number = kFirstPort + static_cast<int>(salt++ % kRange);
    if (port.host_port == 0) named.insert(number);
    ports.push_back(number);
  }
  return ports;
}

/// The first member has an address of its own too.
int port_of_gang(std::uint64_t salt) {
  return kFirstPort + static_cast<int>(salt % static_cast<std::uint64_t>(kLastPort - kFirstPort + 1));
}

void ask(Draft& draft, const std::string& id) {
  auto& record = draft.change(id);
  record.asked = true;
  record.retry_at.reset();
  record.ports = ports_of(record.task.network, record.sequence);
  if (const auto& gang = record.task.gang)
    record.gang_port = port_of_gang(draft.find(member_id(gang->id, 0))->sequence);
  draft.act(action::Launch{id});
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
