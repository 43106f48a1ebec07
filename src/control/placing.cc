#include "control/placing.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

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

/// What the tasks of groups have, or were handed over for: whoever is the first of a group chooses for all.
class GroupChoices {
 public:
  explicit GroupChoices(const Draft& draft) {
    for (const auto* record : draft.active()) note(record->task);
  }

  void note(const workload::Task& task) {
    const auto& wanted = task.resources;
    if (!wanted.group.empty()) chosen_.try_emplace({task.owner, wanted.group}, wanted.gpus, wanted.share);
  }
  bool allow(const workload::Task& task) const {
    const auto& wanted = task.resources;
    const auto found = chosen_.find({task.owner, wanted.group});
    return found == chosen_.end() || found->second == ChosenGpus{wanted.gpus, wanted.share};
  }

 private:
  using ChosenGpus = std::pair<std::vector<workload::DeviceClaim>, workload::Share>;

  std::map<std::pair<uid_t, std::string>, ChosenGpus> chosen_;
};

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

/// Whoever places says which GPUs it has; how much of each, the task says itself.
void give_share(const workload::Share& share, const placement::Node* node, placement::Grant& grant) {
  if (share.whole()) return;
  std::uint64_t all = 0;  // unknown
  if (node != nullptr)
    for (const auto& device : node->inventory.devices)
      if (device.uuid == grant.uuid) all = device.memory_bytes.value_or(0);
  grant.memory_bytes = share.memory_bytes;
  if (all < share.memory_bytes) return;
  const auto held = workload::held_of(share, all);
  grant.milli = held.milli;
  grant.memory_bytes = held.memory_bytes;
}

}  // namespace

void ask_for_places(Draft& draft) {
  auto [jobs, behind, held_back] = draft.waiting();
  QueuePositions positions;
  std::ranges::sort(jobs, {}, &placement::Job::sequence);
  GroupChoices groups(draft);
  for (const auto& job : jobs)
    for (const auto* member : members_of_job(job.id, draft.finder()))
      if (member->asked) groups.note(member->task);
  for (const auto& job : jobs) {
    positions.order.push_back(job.id);
    const auto members = members_of_job(job.id, draft.finder());
    const auto may_join = [&](const auto* member) { return member->asked || groups.allow(member->task); };
    if (!std::ranges::all_of(members, may_join)) {
      positions.reasons[job.id] = {
          .nodes = 1,
          .list = {{placement::Dimension::kGroup, 1, "it asks for other GPUs than its group has"}}};
      continue;
    }
    for (const auto* member : members) {
      if (member->asked) continue;
      groups.note(member->task);
      ask(draft, member->task.id);
    }
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
  const auto* const node = draft.base().cluster.node(event.node);
  for (auto& grant : record.gpus) give_share(record.task.resources.share, node, grant);
}

}  // namespace drover::control
