#include "placement/schedule/fairness.h"

#include <algorithm>
#include <functional>

namespace drover::placement::schedule {
namespace {

constexpr int kOwn = -1;

/// Replaces an element of an ordered set, or adds or removes it, and keeps in mind which it is.
template <typename Key>
void move_to(std::set<Key>& line, std::optional<Key>& key, const std::optional<Key>& next) {
  if (key == next) return;
  auto node = key ? line.extract(*key) : typename std::set<Key>::node_type();
  if (next && node) {
    node.value() = *next;
    line.insert(std::move(node));
  } else if (next) {
    line.insert(*next);
  }
  key = next;
}

}  // namespace

FairShare::FairShare(const Rules& rules, const Load& total) : rules_(rules), total_(total) {
  nodes_.emplace_back();
  indices_[""] = 0;
  for (const auto& [path, queue] : rules.queues) any_guarantee_ |= queue.guarantee != Limits{};
}

int FairShare::node_of(std::string_view path) {
  if (const auto found = indices_.find(path); found != indices_.end()) return found->second;
  const auto parent = node_of(parent_of(path));
  const auto index = static_cast<int>(nodes_.size());
  Node node;
  node.parent = parent;
  if (const auto rule = rules_.queues.find(std::string(path)); rule != rules_.queues.end()) {
    node.weight = std::max(1, rule->second.weight);
    node.guarantee = bounds_of(rule->second.guarantee);
    node.guaranteed = rule->second.guarantee != Limits{};
  }
  node.line = {index};
  node.line.insert(node.line.end(), nodes_[static_cast<std::size_t>(parent)].line.begin(),
                   nodes_[static_cast<std::size_t>(parent)].line.end());
  nodes_.push_back(std::move(node));
  indices_.emplace(path, index);
  return index;
}

int FairShare::queue_of(const Job& job) {
  return node_of(job.queue);
}

int FairShare::user_of(Node& node, const std::string& name) {
  const auto [found, added] = node.user_indices.emplace(name, static_cast<int>(node.users.size()));
  if (added) node.users.emplace_back();
  return found->second;
}

void FairShare::add(int queue, const Job& job, const Load& load, std::size_t tag) {
  auto& node = nodes_[static_cast<std::size_t>(queue)];
  node.users[static_cast<std::size_t>(user_of(node, job.user))].jobs.push_back({&job, load, tag});
}

double FairShare::share(const Load& held) const {
  double dominant = 0;
  for (std::size_t i = 0; i < kDimensions; ++i)
    dominant = std::max(dominant, static_cast<double>(held[i]) / static_cast<double>(total_[i]));
  return dominant;
}

const FairShare::Waiting* FairShare::first_of(int index) const {
  const auto* node = &nodes_[static_cast<std::size_t>(index)];
  while (!node->heads.empty()) {
    const auto child = std::get<4>(*node->heads.begin());
    if (child == kOwn)
      return &node->users[static_cast<std::size_t>(std::get<3>(*node->line_of_users.begin()))].jobs.back();
    node = &nodes_[static_cast<std::size_t>(child)];
  }
  return nullptr;
}

void FairShare::refresh_user(Node& node, int index) {
  auto& user = node.users[static_cast<std::size_t>(index)];
  std::optional<UserKey> key;
  if (!user.jobs.empty()) {
    const auto& job = *user.jobs.back().job;
    key = {-Backwards{job.priority}, share(user.held), job.sequence, index};
  }
  move_to(node.line_of_users, user.key, key);
}

void FairShare::refresh_own(int index) {
  auto& node = nodes_[static_cast<std::size_t>(index)];
  std::optional<HeadKey> key;
  if (!node.line_of_users.empty()) {
    const auto& [priority, unused, arrival, user] = *node.line_of_users.begin();
    key = {true, priority, share(node.own_held), arrival, kOwn};
  }
  move_to(node.heads, node.own_key, key);
}

/// Tells the parents, up to the root, which job is the first now.
void FairShare::refresh_upwards(int index) {
  for (int at = index; at != 0; at = nodes_[static_cast<std::size_t>(at)].parent) {
    auto& node = nodes_[static_cast<std::size_t>(at)];
    std::optional<HeadKey> key;
    if (const auto* first = first_of(at)) {
      const bool uncovered = std::get<0>(*node.heads.begin()) && !covers(at, first->load);
      key = {uncovered, -Backwards{first->job->priority}, share(node.held) / node.weight,
             first->job->sequence, at};
    }
    move_to(nodes_[static_cast<std::size_t>(node.parent)].heads, node.key_in_parent, key);
  }
}

void FairShare::sort(std::vector<Waiting>& jobs) {
  const auto priority_of = [](const Waiting& waiting) { return waiting.job->priority; };
  std::ranges::sort(jobs, std::greater(), [](const Waiting& waiting) {
    return std::pair(-Backwards{waiting.job->priority}, waiting.job->sequence);
  });
  // From the last: of each priority, all but the one that came first.
  for (auto begin = jobs.begin(); begin != jobs.end();) {
    const auto end = std::ranges::upper_bound(begin, jobs.end(), begin->job->priority, {}, priority_of);
    std::ranges::sort(begin, std::prev(end), std::greater(), [](const Waiting& waiting) {
      return std::pair(length_of(*waiting.job).value_or(std::chrono::milliseconds::max()),
                       waiting.job->sequence);
    });
    begin = end;
  }
}

void FairShare::sort() {
  sorted_ = true;
  for (auto& node : nodes_)
    for (std::size_t user = 0; user < node.users.size(); ++user) {
      sort(node.users[user].jobs);
      refresh_user(node, static_cast<int>(user));
    }
  for (auto index = static_cast<int>(nodes_.size()) - 1; index >= 0; --index) {  // children before parents
    refresh_own(index);
    refresh_upwards(index);
  }
}

std::optional<std::size_t> FairShare::next() {
  if (!sorted_) sort();
  if (nodes_[0].heads.empty()) return std::nullopt;
  int index = 0;
  for (auto child = std::get<4>(*nodes_[0].heads.begin()); child != kOwn;
       child = std::get<4>(*nodes_[static_cast<std::size_t>(child)].heads.begin()))
    index = child;
  auto& node = nodes_[static_cast<std::size_t>(index)];
  const auto user = std::get<3>(*node.line_of_users.begin());
  auto& jobs = node.users[static_cast<std::size_t>(user)].jobs;
  const auto tag = jobs.back().tag;
  jobs.pop_back();
  refresh_user(node, user);
  refresh_own(index);
  refresh_upwards(index);
  return tag;
}

void FairShare::charge(int queue, const std::string& user_name, const Load& load) {
  auto& node = nodes_[static_cast<std::size_t>(queue)];
  const auto user = user_of(node, user_name);
  node.users[static_cast<std::size_t>(user)].held += load;
  node.own_held += load;
  for (const auto at : node.line) nodes_[static_cast<std::size_t>(at)].held += load;
  if (!sorted_) return;
  refresh_user(node, user);
  refresh_own(queue);
  refresh_upwards(queue);
}

const std::vector<int>& FairShare::line(int queue) const {
  return nodes_[static_cast<std::size_t>(queue)].line;
}

bool FairShare::has_guarantee(int queue) const {
  return nodes_[static_cast<std::size_t>(queue)].guaranteed;
}

bool FairShare::covers(int queue, const Load& load) const {
  const auto& node = nodes_[static_cast<std::size_t>(queue)];
  bool any = false;
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (!node.guarantee[i] || load[i] <= 0) continue;
    if (node.held[i] + load[i] > *node.guarantee[i]) return false;
    any = true;
  }
  return any;
}

bool FairShare::within_guarantee(int queue, const Load& load, const Load& less) const {
  const auto& node = nodes_[static_cast<std::size_t>(queue)];
  bool any = false;
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (!node.guarantee[i] || load[i] <= 0) continue;
    if (node.held[i] - less[i] > *node.guarantee[i]) return false;
    any = true;
  }
  return any;
}

}  // namespace drover::placement::schedule
