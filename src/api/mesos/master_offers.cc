// What is offered to whom, and what becomes of offers.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "api/mesos/agents.h"
#include "api/mesos/call.h"
#include "api/mesos/executor_info.h"
#include "api/mesos/master.h"
#include "api/mesos/stream.h"
#include "api/mesos/task_info.h"
#include "api/transaction.h"

namespace drover::api::mesos {
namespace {

constexpr std::uint64_t kWholeMiB = 1ULL << 20;

/// Always a text: the driver 390.30 is not the number 390.3, and frameworks read one and the same type on
/// every machine.
void add_attribute(const std::string& name, const std::string& value, v1::Offer& offer) {
  auto& attribute = *offer.add_attributes();
  attribute.set_name(name);
  attribute.set_type(v1::Value::TEXT);
  attribute.mutable_text()->set_value(value);
}

TimePoint moment() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return TimePoint(std::chrono::duration_cast<std::chrono::milliseconds>(since));
}

using Ids = google::protobuf::RepeatedPtrField<v1::OfferID>;
std::vector<std::string> ids_of(const Ids& ids) {
  std::vector<std::string> values;
  for (const auto& id : ids) values.push_back(id.value());
  return values;
}

/// Whether the framework brings it: else it is the one that Mesos itself has for groups.
bool is_own(const v1::ExecutorInfo& executor) {
  return executor.type() == v1::ExecutorInfo::CUSTOM || executor.has_command();
}

/// A LAUNCH is that of so many single tasks, and of those that one executor is to run.
std::vector<Launch> launches_of(const Operation& operation) {
  std::vector<Launch> launches;
  for (const auto& info : operation.launch().task_infos()) {
    const auto* own = info.has_executor() ? &info.executor() : nullptr;
    const auto same = std::ranges::find_if(launches, [&](const Launch& launch) {
      return own != nullptr && launch.own != nullptr &&
             launch.own->executor_id().value() == own->executor_id().value();
    });
    if (same != launches.end())
      same->infos.push_back(&info);
    else
      launches.push_back({{&info}, "", false, own});
  }
  if (operation.has_launch_group()) {
    const auto& executor = operation.launch_group().executor();
    auto& group = launches.emplace_back(
        Launch{{}, executor.executor_id().value(), true, is_own(executor) ? &executor : nullptr});
    for (const auto& info : operation.launch_group().task_group().tasks()) group.infos.push_back(&info);
  }
  return launches;
}

}  // namespace

control::Supply Master::supply(const std::vector<Agent>& agents) const {
  const auto& state = daemon_.state();
  auto taken = control::held_beside_books(state);
  for (const int port : state.machine().foreign_ports)
    taken[agent_id()] += ResourceAmounts{0, 0, 0, 0, {{port, port}}};
  control::Supply supply;
  for (const auto& [id, hostname, node, attributes] : agents) {
    auto& machine = supply.machines[id];
    machine.whole = total_of(node);
    if (!node.cordoned.empty()) continue;
    machine.free = {node.gpus_free, node.milli_cpus_free, node.memory_bytes_free / kWholeMiB * kWholeMiB,
                    node.disk_bytes / kWholeMiB * kWholeMiB, machine.whole.ports};
    machine.free -= taken[id];
  }
  supply.used = control::held_by_frameworks(state);
  supply.hides_gpu_machines = options_.filter_gpu_resources;
  return supply;
}

void Master::add_offer(const std::string& id, const Agent& agent, const Subscriber& subscriber,
                       const std::set<std::string>& executors, Event& event) const {
  const auto& offer = book_.offers().at(id);
  auto& written = *event.mutable_offers()->add_offers();
  written.mutable_id()->set_value(id);
  written.mutable_framework_id()->set_value(offer.framework);
  written.mutable_agent_id()->set_value(agent.id);
  written.set_hostname(agent.hostname);
  auto& url = *written.mutable_url();
  url.set_scheme("http");
  url.mutable_address()->set_hostname(options_.hostname);
  url.mutable_address()->set_ip(options_.ip);
  url.mutable_address()->set_port(options_.port);
  url.set_path("/slave(1)");
  const ResourceStyle style{!subscriber.knows_refinement, subscriber.knows_roles ? offer.role : ""};
  write_resources(offer.amounts, style, *written.mutable_resources());
  for (const auto& [name, values] : agent.attributes)
    for (const auto& value : values) add_attribute(name, value, written);
  if (subscriber.knows_roles) written.mutable_allocation_info()->set_role(offer.role);
  for (const auto& executor : executors) written.add_executor_ids()->set_value(executor);
}

void Master::send_offers(const std::string& framework, const std::vector<std::string>& ids,
                         const std::vector<Agent>& agents) {
  std::map<std::string, std::set<std::string>> executors;  // by agent
  const auto& state = daemon_.state();
  for (const auto& [key, executor] : state.executors)
    if (executor.framework == framework)
      executors[control::agent_id(id(), executor.host)].insert(executor.executor_id);
  for (const auto& [key, task] : state.framework_tasks)
    if (task.framework == framework && !task.within && task.executor_id != task.task_id)
      executors[agent_of(task)].insert(task.executor_id);
  const auto& subscriber = subscribers_.at(framework);
  Event event;
  event.set_type(Event::OFFERS);
  for (const auto& id : ids) {
    const auto agent = std::ranges::find(agents, book_.offers().at(id).agent, &Agent::id);
    add_offer(id, *agent, subscriber, executors[agent->id], event);
  }
  subscriber.stream->send(event);
}

void Master::allocate_soon() {
  if (std::exchange(allocation_due_, true)) return;
  boost::asio::post(context_, [this, alive = alive_] {
    if (*alive) allocate();
  });
}

void Master::send_rescind(const std::string& framework, const std::string& offer) {
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end()) return;
  Event event;
  event.set_type(Event::RESCIND);
  event.mutable_rescind()->mutable_offer_id()->set_value(offer);
  found->second.stream->send(event);
}

void Master::allocate() {
  allocation_due_ = false;
  if (subscribers_.empty() || accepting_ > 0) return;
  const auto agents = agents_of(daemon_, options_);
  const auto changes = book_.allocate(supply(agents), moment());
  for (const auto& [framework, offer] : changes.rescinded) send_rescind(framework, offer);
  std::map<std::string, std::vector<std::string>> made;
  for (const auto& id : changes.made) made[book_.offers().at(id).framework].push_back(id);
  for (const auto& [framework, ids] : made) send_offers(framework, ids, agents);
  if (changes.more_to_offer) allocate_soon();
}

void Master::decline(const std::string& framework, const Call& call) {
  for (const auto& id : call.decline().offer_ids())
    book_.refuse(framework, book_.take(framework, {id.value()}), call.decline().filters().refuse_seconds(),
                 moment());
  allocate_soon();
}

asio::awaitable<void> Master::accept(const std::string& framework, const Call& call, const Users& users) {
  auto taken = book_.take(framework, ids_of(call.accept().offer_ids()));
  std::vector<Launch> launches;
  for (const auto& operation : call.accept().operations()) {
    if (!operation.has_launch() && !operation.has_launch_group())
      refuse_operation(framework, operation, taken);
    std::ranges::move(launches_of(operation), std::back_inserter(launches));
  }
  if (!taken.mistake.empty()) {
    for (const auto& launch : launches)
      drop_launch(framework, launch, "REASON_INVALID_OFFERS",
                  "Task launched with invalid offers: " + taken.mistake);
    co_return allocate_soon();
  }
  auto left = taken.amounts;
  if (!launches.empty()) {
    std::vector<Status> launched;
    ++accepting_;
    const auto kept = co_await in_transaction(daemon_, [&]() -> Status {
      launched.clear();
      left = taken.amounts;
      for (const auto& each : launches) launched.push_back(launch(framework, each, taken, left, users));
      return {};
    });
    --accepting_;
    if (!kept) left = taken.amounts;
    for (std::size_t i = 0; i < launches.size(); ++i)
      if (!kept)
        drop_launch(framework, launches[i], "REASON_MASTER_DISCONNECTED", to_string(kept.error()));
      else if (!launched[i])
        refuse_launch(framework, launches[i], launched[i].error());
  }
  taken.amounts = std::move(left);
  book_.refuse(framework, std::move(taken), call.accept().filters().refuse_seconds(), moment());
  allocate_soon();
}

/// Reservations and volumes are not kept here. As in Mesos only operations with an id are told so.
void Master::refuse_operation(const std::string& framework, const Operation& operation,
                              const control::TakenOffers& offered) {
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end() || !operation.has_id()) return;
  Event event;
  event.set_type(Event::UPDATE_OPERATION_STATUS);
  auto& status = *event.mutable_update_operation_status()->mutable_status();
  *status.mutable_operation_id() = operation.id();
  status.set_state(offered.mistake.empty() ? v1::OPERATION_ERROR : v1::OPERATION_DROPPED);
  status.set_message(offered.mistake.empty()
                         ? fmt::format("Operations of type {} are not supported: resources are not reserved "
                                       "here, and there are no persistent volumes",
                                       Operation::Type_Name(operation.type()))
                         : "Operation attempted with invalid offers: " + offered.mistake);
  status.mutable_agent_id()->set_value(offered.agent.empty() ? agent_id() : offered.agent);
  found->second.stream->send(event);
}

namespace {

Status is_within(const ResourceAmounts& left, const ResourceAmounts& wanted) {
  if (left.covers(wanted)) return {};
  return fail(ErrorKind::kInvalid, fmt::format("Task uses more resources {} than available {}",
                                               to_string(wanted), to_string(left)));
}

}  // namespace

Status Master::launch_tasks(const Launch& launch, const LaunchContext& context, ResourceAmounts& left) {
  control::event::FrameworkLaunched launched;
  ResourceAmounts wanted;
  for (const auto* info : launch.infos) {
    DROVER_TRY(auto task, read_task(*info, context, launch.in_group));
    DROVER_TRY(auto health_check, read_health_check(*info, task));
    DROVER_TRY(auto check, read_check(*info, task));
    wanted += read_resources(info->resources()).value_or(ResourceAmounts{});
    launched.launches.push_back({launch.in_group ? launch.executor : info->task_id().value(), std::move(task),
                                 std::move(health_check), std::move(check)});
  }
  DROVER_CHECK_OK(is_within(left, wanted));
  DROVER_CHECK_OK(daemon_.change(launched));
  left -= wanted;
  return {};
}

/// One that runs already has what its tasks need: nothing of the offer goes to it.
Status Master::launch_on_executor(const Launch& launch, const LaunchContext& context, ResourceAmounts& left) {
  const ExecutorPlace place{options_.executor_endpoint, daemon_.state().executor_timeouts,
                            options_.executors_in_pods};
  DROVER_TRY(auto launched, read_executor(*launch.own, launch.infos, context, launch.in_group, place));
  const bool runs = daemon_.state().executors.contains(
      control::executor_key(context.framework, launched.executor_id, launched.host));
  const auto wanted = runs ? ResourceAmounts{} : launched.given;
  DROVER_CHECK_OK(is_within(left, wanted));
  DROVER_CHECK_OK(daemon_.change(control::event::ExecutorLaunched{std::move(launched)}));
  left -= wanted;
  return {};
}

Status Master::launch(const std::string& framework, const Launch& launch, const control::TakenOffers& offered,
                      ResourceAmounts& left, const Users& users) {
  const auto& state = daemon_.state();
  const auto found = state.frameworks.find(framework);
  if (found == state.frameworks.end()) return fail(ErrorKind::kNotFound, "The framework has been removed");
  const auto record = found->second;
  const LaunchContext context{framework,       offered.agent, users,
                              record.user,     record.owner,  record.owner_name,
                              launch.executor, offered.role,  control::host_of_agent(id(), offered.agent)};
  return launch.own == nullptr ? launch_tasks(launch, context, left)
                               : launch_on_executor(launch, context, left);
}

void Master::refuse_launch(const std::string& framework, const Launch& launch, const Error& why) {
  const auto found = daemon_.state().frameworks.find(framework);
  if (found == daemon_.state().frameworks.end()) return;
  const bool ends = why.kind == ErrorKind::kUnavailable;  // another executor may have them
  const auto* state = !ends ? "TASK_ERROR" : found->second.knows_partitions ? "TASK_DROPPED" : "TASK_LOST";
  const auto* reason = ends              ? "REASON_EXECUTOR_TERMINATED"
                       : launch.in_group ? "REASON_TASK_GROUP_INVALID"
                                         : "REASON_TASK_INVALID";
  for (const auto* info : launch.infos)
    send_passing(framework, {info->task_id().value(), info->agent_id().value(), state, reason, why.message});
}

/// It was never tried.
void Master::drop_launch(const std::string& framework, const Launch& launch, const std::string& reason,
                         const std::string& message) {
  const auto found = daemon_.state().frameworks.find(framework);
  const bool drops = found != daemon_.state().frameworks.end() && found->second.knows_partitions;
  for (const auto* info : launch.infos)
    send_passing(framework, {info->task_id().value(), info->agent_id().value(),
                             drops ? "TASK_DROPPED" : "TASK_LOST", reason, message});
}

}  // namespace drover::api::mesos
