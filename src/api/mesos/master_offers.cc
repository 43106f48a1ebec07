// What is offered to whom, and what becomes of offers.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>

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

control::Supply Master::supply() const {
  const auto node = daemon_.node();
  const auto& state = daemon_.state();
  const std::vector<control::PortRange> ports{{node.port_begin, node.port_end}};
  control::Supply supply;
  supply.whole = {node.gpus_total, node.milli_cpus_total, node.memory_bytes_total, node.disk_bytes, ports};
  supply.free = {node.gpus_free, node.milli_cpus_free, node.memory_bytes_free / kWholeMiB * kWholeMiB,
                 node.disk_bytes / kWholeMiB * kWholeMiB, ports};
  ResourceAmounts taken;
  taken.ports = control::held_by_all(state).ports;
  for (const int port : state.machine().foreign_ports) taken += ResourceAmounts{0, 0, 0, 0, {{port, port}}};
  supply.free -= taken;
  if (!node.cordoned.empty()) supply.free = {};
  supply.used = control::held_by_frameworks(state);
  supply.hides_gpu_machines = options_.filter_gpu_resources;
  return supply;
}

void Master::send_offer(const std::string& id) {
  const auto& offer = book_.offers().at(id);
  const auto& framework = offer.framework;
  auto& subscriber = subscribers_.at(framework);
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
  const ResourceStyle style{!subscriber.knows_refinement, subscriber.knows_roles ? offer.role : ""};
  write_resources(offer.amounts, style, *written.mutable_resources());
  for (const auto& [name, values] : daemon_.state().machine().attributes)
    for (const auto& value : values) add_attribute(name, value, written);
  if (subscriber.knows_roles) written.mutable_allocation_info()->set_role(offer.role);
  std::set<std::string> executors;
  for (const auto& [key, executor] : daemon_.state().executors)
    if (executor.framework == framework) executors.insert(executor.executor_id);
  for (const auto& [key, task] : daemon_.state().framework_tasks)
    if (task.framework == framework && !task.within && task.executor_id != task.task_id)
      executors.insert(task.executor_id);
  for (const auto& executor : executors) written.add_executor_ids()->set_value(executor);
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
  const auto changes = book_.allocate(supply(), moment());
  for (const auto& [framework, offer] : changes.rescinded) send_rescind(framework, offer);
  if (!changes.made.empty()) send_offer(changes.made);
  if (changes.more_to_offer) allocate_soon();
}

void Master::decline(const std::string& framework, const Call& call) {
  auto taken = book_.take(framework, ids_of(call.decline().offer_ids()));
  book_.refuse(framework, taken.role, std::move(taken.amounts), call.decline().filters().refuse_seconds(),
               moment());
  allocate_soon();
}

asio::awaitable<void> Master::accept(const std::string& framework, const Call& call, const Users& users) {
  auto taken = book_.take(framework, ids_of(call.accept().offer_ids()));
  std::vector<Launch> launches;
  for (const auto& operation : call.accept().operations()) {
    if (!operation.has_launch() && !operation.has_launch_group())
      refuse_operation(framework, operation, taken.mistake);
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
      for (const auto& each : launches) launched.push_back(launch(framework, each, taken.role, left, users));
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
  book_.refuse(framework, taken.role, std::move(left), call.accept().filters().refuse_seconds(), moment());
  allocate_soon();
}

/// Reservations and volumes are not kept here. As in Mesos only operations with an id are told so.
void Master::refuse_operation(const std::string& framework, const Operation& operation,
                              const std::string& mistake) {
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end() || !operation.has_id()) return;
  Event event;
  event.set_type(Event::UPDATE_OPERATION_STATUS);
  auto& status = *event.mutable_update_operation_status()->mutable_status();
  *status.mutable_operation_id() = operation.id();
  status.set_state(mistake.empty() ? v1::OPERATION_ERROR : v1::OPERATION_DROPPED);
  status.set_message(mistake.empty()
                         ? fmt::format("Operations of type {} are not supported: resources are not reserved "
                                       "here, and there are no persistent volumes",
                                       Operation::Type_Name(operation.type()))
                         : "Operation attempted with invalid offers: " + mistake);
  status.mutable_agent_id()->set_value(agent_id());
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
  const ExecutorPlace place{options_.executor_endpoint, daemon_.state().executor_timeouts};
  DROVER_TRY(auto launched, read_executor(*launch.own, launch.infos, context, launch.in_group, place));
  const bool runs =
      daemon_.state().executors.contains(control::executor_key(context.framework, launched.executor_id));
  const auto wanted = runs ? ResourceAmounts{} : launched.given;
  DROVER_CHECK_OK(is_within(left, wanted));
  DROVER_CHECK_OK(daemon_.change(control::event::ExecutorLaunched{std::move(launched)}));
  left -= wanted;
  return {};
}

/// Takes what it uses from `left`.
Status Master::launch(const std::string& framework, const Launch& launch, const std::string& role,
                      ResourceAmounts& left, const Users& users) {
  const auto found = daemon_.state().frameworks.find(framework);
  if (found == daemon_.state().frameworks.end())
    return fail(ErrorKind::kNotFound, "The framework has been removed");
  const auto record = found->second;
  const LaunchContext context{framework,    agent_id(),        users,           record.user,
                              record.owner, record.owner_name, launch.executor, role};
  return launch.own != nullptr ? launch_on_executor(launch, context, left)
                               : launch_tasks(launch, context, left);
}

void Master::refuse_launch(const std::string& framework, const Launch& launch, const Error& why) {
  const auto found = daemon_.state().frameworks.find(framework);
  if (found == daemon_.state().frameworks.end()) return;
  const bool ends = why.kind == ErrorKind::kUnavailable;  // another executor may have them
  for (const auto* info : launch.infos)
    send_passing(framework, info->task_id().value(),
                 !ends                            ? "TASK_ERROR"
                 : found->second.knows_partitions ? "TASK_DROPPED"
                                                  : "TASK_LOST",
                 ends              ? "REASON_EXECUTOR_TERMINATED"
                 : launch.in_group ? "REASON_TASK_GROUP_INVALID"
                                   : "REASON_TASK_INVALID",
                 why.message);
}

/// It was never tried.
void Master::drop_launch(const std::string& framework, const Launch& launch, const std::string& reason,
                         const std::string& message) {
  const auto found = daemon_.state().frameworks.find(framework);
  const bool drops = found != daemon_.state().frameworks.end() && found->second.knows_partitions;
  for (const auto* info : launch.infos)
    send_passing(framework, info->task_id().value(), drops ? "TASK_DROPPED" : "TASK_LOST", reason, message);
}

}  // namespace drover::api::mesos
