// What is offered to whom, and what becomes of offers.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>

#include "api/mesos/call.h"
#include "api/mesos/master.h"
#include "api/mesos/task_info.h"

namespace drover::api::mesos {
namespace {

constexpr double kMostRefuseSeconds = 365.0 * 24 * 3600;
/// One that does not answer keeps what it was offered only as long as nobody else wants it.
constexpr std::chrono::seconds kUndisturbed{30};
constexpr std::uint64_t kMiB = 1ULL << 20;

/// What a task holds.
Amounts held_by(const control::TaskRecord& record) {
  const auto& task = record.task;
  Amounts amounts;
  for (const auto& claim : task.resources.gpus) amounts.gpus += claim.count;
  amounts.milli_cpus = task.resources.milli_cpus;
  amounts.memory_bytes = task.resources.memory_bytes;
  for (const int port : record.ports) amounts += Amounts{0, 0, 0, 0, {{port, port}}};
  if (record.gang_port != 0) amounts += Amounts{0, 0, 0, 0, {{record.gang_port, record.gang_port}}};
  return amounts;
}

void add_attribute(const std::string& name, const std::string& value, v1::Offer& offer) {
  auto& attribute = *offer.add_attributes();
  attribute.set_name(name);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size() && !value.empty()) {
    attribute.set_type(v1::Value::SCALAR);
    attribute.mutable_scalar()->set_value(number);
  } else {
    attribute.set_type(v1::Value::TEXT);
    attribute.mutable_text()->set_value(value);
  }
}

double largest(const Amounts& part, const Amounts& whole) {
  const auto ratio = [](auto a, auto b) {
    return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
  };
  return std::max({ratio(part.gpus, whole.gpus), ratio(part.milli_cpus, whole.milli_cpus),
                   ratio(part.memory_bytes, whole.memory_bytes)});
}

}  // namespace

Amounts Master::free() const {
  const auto node = daemon_.node();
  Amounts amounts{node.gpus_free,
                  node.milli_cpus_free,
                  node.memory_bytes_free / kMiB * kMiB,
                  node.disk_bytes / kMiB * kMiB,
                  {{node.port_begin, node.port_end}}};
  const auto& state = daemon_.state();
  for (const auto& id : state.active) {
    Amounts ports;
    ports.ports = held_by(state.tasks.at(id)).ports;
    amounts -= ports;
  }
  return amounts;
}

std::map<std::string, Amounts> Master::offered() const {
  std::map<std::string, Amounts> sums;
  for (const auto& [id, offer] : offers_) sums[offer.framework] += offer.amounts;
  return sums;
}

/// Drover's own queue, or a GPU that fails, may take what was offered: the newest offers go first.
void Master::rescind_what_is_gone() {
  const auto all = free();
  Amounts sum;
  std::vector<std::string> gone;
  for (const auto& [id, offer] : offers_) {
    auto with = sum;
    with += offer.amounts;
    // Ports and disk are no reason: what is taken of them is found when the offer is accepted.
    auto counted = with;
    counted.ports.clear();
    counted.disk_bytes = 0;
    if (all.covers(counted))
      sum = std::move(with);
    else
      gone.push_back(id);
  }
  for (const auto& id : gone) {
    const auto offer = offers_.extract(id);
    if (const auto found = subscribers_.find(offer.mapped().framework); found != subscribers_.end()) {
      Event event;
      event.set_type(Event::RESCIND);
      event.mutable_rescind()->mutable_offer_id()->set_value(id);
      send(found->second, event);
    }
  }
}

/// Those that have least of the machine first.
std::vector<std::string> Master::by_share() const {
  const auto& state = daemon_.state();
  const auto node = daemon_.node();
  const Amounts whole{node.gpus_total, node.milli_cpus_total, node.memory_bytes_total, 0, {}};
  auto sums = offered();
  for (const auto& id : state.active) {
    const auto& record = state.tasks.at(id);
    if (record.task.origin.kind == workload::OriginKind::kFramework)
      sums[record.task.origin.name] += held_by(record);
  }
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [framework, subscriber] : subscribers_)
    shares.emplace_back(largest(sums[framework], whole), framework);
  std::ranges::sort(shares);
  std::vector<std::string> order;
  for (auto& [share, framework] : shares) order.push_back(std::move(framework));
  return order;
}

bool Master::wants(const std::string& framework, Subscriber& subscriber, const Amounts& amounts) const {
  if (subscriber.suppressed || subscriber.stream->closed) return false;
  const auto& frameworks = daemon_.state().frameworks;
  const auto record = frameworks.find(framework);
  if (record == frameworks.end()) return false;
  // By the machine's total, as Mesos has it: also when all its GPUs are taken.
  if (options_.filter_gpu_resources && !record->second.knows_gpus && daemon_.node().gpus_total > 0)
    return false;
  const auto now = Clock::now();
  return std::none_of(subscriber.filters.begin(), subscriber.filters.end(), [&](const Filter& filter) {
    return filter.until > now && filter.refused.covers(amounts);
  });
}

void Master::offer(const std::string& framework, Subscriber& subscriber, Amounts amounts) {
  const auto id = fmt::format("{}-O{}", id_, next_offer_++);
  const auto node = daemon_.node();
  Event event;
  event.set_type(Event::OFFERS);
  auto& written = *event.mutable_offers()->add_offers();
  written.mutable_id()->set_value(id);
  written.mutable_framework_id()->set_value(framework);
  written.mutable_agent_id()->set_value(agent_id());
  written.set_hostname(options_.hostname);
  auto& url = *written.mutable_url();
  url.set_scheme("http");
  url.mutable_address()->set_hostname(options_.hostname);
  url.mutable_address()->set_ip(options_.ip);
  url.mutable_address()->set_port(options_.port);
  url.set_path("/slave(1)");
  ResourceStyle style{!subscriber.knows_refinement, subscriber.role};
  write_resources(amounts, style, *written.mutable_resources());
  for (const auto& [name, values] : daemon_.state().machine().attributes)
    for (const auto& value : values) add_attribute(name, value, written);
  if (!subscriber.role.empty()) written.mutable_allocation_info()->set_role(subscriber.role);
  std::set<std::string> executors;
  for (const auto& [key, task] : daemon_.state().framework_tasks)
    if (task.framework == framework && task.executor_id != task.task_id) executors.insert(task.executor_id);
  for (const auto& executor : executors) written.add_executor_ids()->set_value(executor);
  offers_.emplace(id, Offer{framework, std::move(amounts), Clock::now()});
  send(subscriber, event);
}

void Master::allocate_soon() {
  if (std::exchange(allocation_due_, true)) return;
  boost::asio::post(context_, [this, alive = alive_] {
    if (*alive) allocate();
  });
}

/// All that is free goes to one framework, which gives back what it does not want; so do the allocators of
/// Mesos.
void Master::allocate() {
  allocation_due_ = false;
  if (subscribers_.empty()) return;
  rescind_what_is_gone();
  auto rest = free();
  for (const auto& [id, offer] : offers_) rest -= offer.amounts;
  const auto order = by_share();
  if (rest.worth_offering()) {
    for (const auto& framework : order) {
      auto& subscriber = subscribers_.at(framework);
      if (!wants(framework, subscriber, rest)) continue;
      offer(framework, subscriber, std::move(rest));
      return;
    }
    return;
  }
  const auto now = Clock::now();
  const auto waits = [&](const std::string& framework) {
    const auto sums = offered();
    return !sums.contains(framework) && wants(framework, subscribers_.at(framework), rest);
  };
  if (std::none_of(order.begin(), order.end(), waits)) return;
  for (const auto& [id, old] : offers_) {
    if (now - old.at < kUndisturbed) continue;
    const auto framework = old.framework;
    refuse(subscribers_.at(framework), old.amounts, 5);
    drop_offers(framework, true);
    allocate_soon();
    return;
  }
}

void Master::drop_offers(const std::string& framework, bool tell) {
  for (auto offer = offers_.begin(); offer != offers_.end();) {
    if (offer->second.framework != framework) {
      ++offer;
      continue;
    }
    if (const auto found = subscribers_.find(framework); tell && found != subscribers_.end()) {
      Event event;
      event.set_type(Event::RESCIND);
      event.mutable_rescind()->mutable_offer_id()->set_value(offer->first);
      send(found->second, event);
    }
    offer = offers_.erase(offer);
  }
}

void Master::refuse(Subscriber& subscriber, Amounts amounts, double seconds) {
  constexpr double kDefault = 5.0;
  if (!(seconds >= 0)) seconds = kDefault;
  seconds = std::min(seconds, kMostRefuseSeconds);
  if (seconds == 0) return;
  const auto until = Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  std::erase_if(subscriber.filters, [&](const Filter& filter) { return amounts.covers(filter.refused); });
  subscriber.filters.push_back({std::move(amounts), until});
}

void Master::decline(const std::string& framework, const Call& call) {
  Amounts refused;
  for (const auto& id : call.decline().offer_ids()) {
    const auto found = offers_.find(id.value());
    if (found == offers_.end() || found->second.framework != framework) continue;
    refused += found->second.amounts;
    offers_.erase(found);
  }
  refuse(subscribers_.at(framework), std::move(refused), call.decline().filters().refuse_seconds());
  allocate_soon();
}

void Master::accept(const std::string& framework, const Call& call, const Users& users) {
  Amounts left;
  std::string mistake = call.accept().offer_ids().empty() ? "No offers specified" : "";
  std::vector<std::string> mine;
  for (const auto& id : call.accept().offer_ids()) {
    const auto found = offers_.find(id.value());
    if (found == offers_.end() || found->second.framework != framework) {
      mistake = fmt::format("Offer {} is no longer valid", id.value());
      continue;
    }
    left += found->second.amounts;
    mine.push_back(id.value());
  }
  for (const auto& id : mine) offers_.erase(id);
  const bool dropped_name = daemon_.state().frameworks.at(framework).knows_partitions;
  for (const auto& operation : call.accept().operations()) {
    std::vector<std::vector<const v1::TaskInfo*>> launches;
    std::string executor;
    for (const auto& info : operation.launch().task_infos()) launches.push_back({&info});
    if (operation.has_launch_group()) {
      executor = operation.launch_group().executor().executor_id().value();
      auto& group = launches.emplace_back();
      for (const auto& info : operation.launch_group().task_group().tasks()) group.push_back(&info);
    }
    for (const auto& infos : launches) {
      if (mistake.empty()) {
        launch(framework, infos, executor, left, users);
        continue;
      }
      for (const auto* info : infos)
        send_passing(framework, info->task_id().value(), dropped_name ? "TASK_DROPPED" : "TASK_LOST",
                     "REASON_INVALID_OFFERS", "Task launched with invalid offers: " + mistake);
    }
  }
  if (const auto found = subscribers_.find(framework); found != subscribers_.end())
    refuse(found->second, std::move(left), call.accept().filters().refuse_seconds());
  allocate_soon();
}

/// One task, or a group when there is an executor. Takes what it uses from `left`.
void Master::launch(const std::string& framework, const std::vector<const v1::TaskInfo*>& infos,
                    const std::string& executor, Amounts& left, const Users& users) {
  const auto& record = daemon_.state().frameworks.at(framework);
  const LaunchContext context{framework, agent_id(), users, record.user, record.owner, record.owner_name};
  control::event::FrameworkLaunched launched;
  Amounts wanted;
  std::string mistake;
  for (const auto* info : infos) {
    auto task = read_task(*info, context, !executor.empty());
    if (!task) {
      mistake = task.error().message;
      break;
    }
    wanted += read_resources(info->resources()).value_or(Amounts{});
    if (!executor.empty()) task->environment["MESOS_EXECUTOR_ID"] = executor;
    launched.launches.push_back({executor.empty() ? info->task_id().value() : executor, std::move(*task)});
  }
  if (mistake.empty() && !left.covers(wanted))
    mistake =
        fmt::format("Task uses more resources {} than available {}", to_string(wanted), to_string(left));
  if (mistake.empty()) {
    const auto made = daemon_.change(launched);
    if (!made) mistake = made.error().message;
  }
  if (mistake.empty()) {
    left -= wanted;
    return;
  }
  for (const auto* info : infos)
    send_passing(framework, info->task_id().value(), "TASK_ERROR",
                 executor.empty() ? "REASON_TASK_INVALID" : "REASON_TASK_GROUP_INVALID", mistake);
}

}  // namespace drover::api::mesos
