#include "chronos/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"
#include "chronos/pattern.h"
#include "workload/docker_parameters.h"
#include "workload/resource_fields.h"
#include "workload/webhook.h"

namespace drover::chronos {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using workload::Schedule;
using workload::Task;

constexpr double kDefaultCpus = 0.1;
constexpr double kDefaultMemory = 128;  // MiB
constexpr double kDefaultDisk = 256;    // MiB
constexpr int kDefaultRetries = 2;
constexpr std::size_t kMostParents = 1000;

/// The number that a text is, or nothing.
std::optional<json> number_in(const std::string& text) {
  if (std::int64_t whole = 0; !text.empty()) {
    const auto* last = text.data() + text.size();
    if (const auto [end, error] = std::from_chars(text.data(), last, whole);
        error == std::errc() && end == last)
      return json(whole);
    double real = 0;
    if (const auto [end, error] = std::from_chars(text.data(), last, real);
        error == std::errc() && end == last && std::isfinite(real))
      return json(real);
  }
  return std::nullopt;
}

/// Text that says a number or a truth value becomes one, in the fields that are such; "" is as if absent.
void make_plain(json& job) {
  for (const auto* name : {"cpus", "mem", "disk", "gpus", "retries", "maxCompletionTime"}) {
    const auto field = job.find(name);
    if (field == job.end() || !field->is_string()) continue;
    const auto text = field->get<std::string>();
    if (text.empty())
      job.erase(field);
    else if (const auto number = number_in(text))
      *field = *number;
  }
  for (const auto* name :
       {"shell", "disabled", "softError", "dataProcessingJobType", "highPriority", "concurrent", "async"}) {
    const auto field = job.find(name);
    if (field == job.end() || !field->is_string()) continue;
    if (*field == "true" || *field == "false") *field = *field == "true";
  }
  for (const auto* name : {"retries", "maxCompletionTime"})
    if (const auto field = job.find(name); field != job.end() && field->is_number_float()) {
      const auto value = field->get<double>();
      if (std::abs(value) < 1e15 && value == std::floor(value)) *field = static_cast<std::int64_t>(value);
    }
}

/// One job while it is read: what the task is made of, and the definition that is shown again.
class JobReader {
 public:
  JobReader(const json& job, const Attributes* machine) : job_(job), machine_(machine), in_(job, mistakes_) {}

  JobRequest read();
  std::vector<Error> take_mistakes() { return std::move(mistakes_); }

 private:
  std::string text(const std::string& name) {
    auto value = in_.string(name).value_or("");
    if (value.find('\0') != value.npos) in_.mistake(name, "a zero byte cannot be in it");
    return value;
  }
  bool truth(const std::string& name, bool fallback) { return in_.boolean(name).value_or(fallback); }
  void read_command();
  void read_environment();
  void read_resources();
  void read_fetch();
  void read_container();
  void read_parameters(Decoder& container);
  void read_networks(Decoder& container);
  void read_constraints();
  void read_epsilon();
  void read_webhook();
  void add_job_variables();
  void constrain(const json& constraint, std::size_t index);

  const json& job_;
  const Attributes* machine_;  ///< null when it is not known
  std::vector<Error> mistakes_;
  Decoder in_;
  Schedule schedule_;
  ordered_json shown_ = ordered_json::object();
};

void JobReader::read_command() {
  auto& task = schedule_.task;
  const auto command = text("command");
  auto arguments = in_.string_list("arguments").value_or(std::vector<std::string>{});
  schedule_.shell = truth("shell", true);
  shown_["arguments"] = arguments;
  shown_["command"] = command;
  if (schedule_.shell) {
    if (!command.empty()) {
      task.command = {"/bin/sh", "-c", command};
      task.bypass_entrypoint = true;
    }
  } else {
    if (!command.empty() && (arguments.empty() || arguments.front() != command))
      task.command.edit().push_back(command);
    for (const auto& word : arguments) task.command.edit().push_back(word);
  }
  if (task.command.empty() && !job_.contains("container"))
    in_.mistake("command", "there is nothing to run", "give a command, or a container whose image has one");
}

void JobReader::read_environment() {
  auto list = ordered_json::array();
  auto& environment = schedule_.task.environment.edit();
  for (auto& variable : in_.objects("environmentVariables")) {
    const auto name = variable.string("name").value_or("");
    std::string value;
    if (const auto* given = variable.value("value"))
      value = given->is_string() ? given->get<std::string>() : given->dump();
    if (name.empty() || name.find('=') != name.npos || (name + value).find('\0') != std::string::npos)
      variable.mistake("name", fmt::format("'{}' is not the name of a variable", name));
    environment[name] = value;
    list.push_back({{"name", name}, {"value", value}});
  }
  shown_["environmentVariables"] = std::move(list);
}

void JobReader::read_resources() {
  const auto amount = [&](const char* name, double fallback, double most) {
    const auto given = in_.number(name, 0, most).value_or(0);
    const auto value = given == 0 ? fallback : given;
    shown_[name] = value;
    return value;
  };
  auto& resources = schedule_.task.resources;
  resources.milli_cpus = std::max<std::int64_t>(1, std::llround(amount("cpus", kDefaultCpus, 1000) * 1000));
  amount("disk", kDefaultDisk, 1e12);
  resources.memory_bytes =
      static_cast<std::uint64_t>(std::max(4.0, amount("mem", kDefaultMemory, 1e12)) * (1 << 20));
  // What GPUs it needs may be said as precisely as of any task; of these Chronos knows none.
  json gpus = json::object();
  for (const auto& [name, value] : job_.items())
    if (name == "gpus" || name.starts_with("gpu_")) gpus[name] = value;
  if (const auto count = gpus.find("gpus"); count != gpus.end() && count->is_number()) {
    const auto number = count->get<double>();
    if (number == 0)
      gpus.erase("gpus");
    else if (number == std::floor(number) && std::abs(number) < 1e9)
      *count = static_cast<std::int64_t>(number);
  }
  for (const auto& [name, value] : gpus.items()) shown_[name] = value;
  Decoder decoder(gpus, mistakes_);
  workload::decode_resources(decoder, resources);
}

void JobReader::read_fetch() {
  auto fetch = ordered_json::array();
  auto uris = ordered_json::array();
  std::vector<std::string> given;
  for (auto& uri : in_.string_list("uris").value_or(std::vector<std::string>{}))
    given.push_back(std::move(uri));
  auto& files = schedule_.task.fetch.edit();
  for (auto& each : in_.objects("fetch")) {
    workload::Fetch file;
    file.uri = each.string("uri").value_or("");
    file.executable = each.boolean("executable").value_or(false);
    file.cache = each.boolean("cache").value_or(false);
    file.extract = each.boolean("extract").value_or(true);
    file.output_file = each.string("output_file").value_or("");
    if (file.uri.empty()) each.mistake("uri", "what is to be fetched is missing");
    files.push_back(std::move(file));
  }
  std::vector<std::string> fetched;
  for (const auto& file : files) fetched.push_back(file.uri);
  // A job as it is shown has both, and may be sent again.
  if (!files.empty() && !given.empty() && given != fetched)
    in_.mistake("uris",
                fmt::format("Tried to add both uri (deprecated) and fetch parameters on {}", schedule_.name));
  if (files.empty())
    for (const auto& uri : given) files.push_back({uri, true, false, false, ""});
  for (const auto& file : files) {
    ordered_json one = {
        {"uri", file.uri}, {"executable", file.executable}, {"cache", file.cache}, {"extract", file.extract}};
    if (!file.output_file.empty()) one["output_file"] = file.output_file;
    fetch.push_back(std::move(one));
    uris.push_back(file.uri);
  }
  shown_["fetch"] = std::move(fetch);
  shown_["uris"] = std::move(uris);
}

void JobReader::read_parameters(Decoder& container) {
  for (auto& parameter : container.objects("parameters")) {
    const auto key = parameter.string("key").value_or("");
    const auto value = parameter.string("value").value_or("");
    if (const auto read = workload::read_docker_parameter(key, value, schedule_.task); !read)
      parameter.mistake(read.error().path.substr(1), read.error().message, read.error().hint);
  }
}

/// Ports of a network of its own: what is forwarded to the container.
void JobReader::read_networks(Decoder& container) {
  for (auto& network : container.objects("networkInfos"))
    for (auto& mapping : network.objects("portMappings")) {
      workload::Port port;
      const auto read = [&](const char* name) {
        const auto* given = mapping.value(name);
        if (given == nullptr) return 0;
        const auto number = given->is_string() ? number_in(given->get<std::string>()) : std::optional(*given);
        if (number && number->is_number_integer() && *number >= 0 && *number <= 65535)
          return number->get<int>();
        mapping.mistake(name, fmt::format("{} is not a port", given->dump()));
        return 0;
      };
      port.host_port = read("hostPort");
      port.container_port = read("containerPort");
      schedule_.task.network.ports.push_back(std::move(port));
    }
}

void JobReader::read_container() {
  auto container = in_.object("container");
  if (!container) return;
  auto& task = schedule_.task;
  const auto type = container->string("type").value_or("DOCKER");
  if (type != "DOCKER" && type != "MESOS" && type != "docker" && type != "mesos")
    container->mistake("type", fmt::format("there is no container '{}'", type), "write DOCKER or MESOS");
  if (const auto image = container->string("image"); image && !image->empty()) task.image = *image;
  if (container->boolean("forcePullImage").value_or(false)) task.pull = PullPolicy::kAlways;
  if (!task.image && type == "DOCKER") container->mistake("image", "the name of the image is missing");
  const bool is_mesos = type == "MESOS" || type == "mesos";
  task.container_type = is_mesos ? workload::ContainerType::kMesos : workload::ContainerType::kDocker;
  // Only Docker's own way puts what is to run behind the image's entrypoint.
  if (is_mesos) task.bypass_entrypoint = !task.command.empty();
  const auto network = container->string("network").value_or("HOST");
  if (network == "BRIDGE")
    task.network.mode = workload::NetworkMode::kBridge;
  else if (network != "HOST")
    container->mistake("network", fmt::format("the network '{}' is not there", network),
                       "write HOST or BRIDGE");
  read_networks(*container);
  for (auto& each : container->objects("volumes")) {
    workload::Volume volume;
    volume.container_path = each.string("containerPath").value_or("");
    volume.host_path = each.string("hostPath").value_or("");
    const auto mode = each.string("mode").value_or("RW");
    volume.read_only = mode == "RO" || mode == "ro";
    if (each.value("external") != nullptr)
      each.mistake("external", "volumes of drivers are not there", "give a hostPath");
    else if (volume.container_path.empty() || !volume.host_path.starts_with('/'))
      each.mistake("hostPath", "a volume has an absolute hostPath and a containerPath");
    task.volumes.edit().push_back(std::move(volume));
  }
  read_parameters(*container);
  shown_["container"] = ordered_json(job_["container"]);
}

/// Keeps the machine where the constraint holds, and only there. Machines are told apart by their attributes;
/// "hostname" is one.
void JobReader::constrain(const json& constraint, std::size_t index) {
  const auto wrong = [&](const std::string& why) {
    in_.mistake("constraints", fmt::format("constraint {} {}", index, why),
                "write [\"attribute\", \"EQUALS\", \"value\"], or LIKE, or UNLIKE");
  };
  if (!constraint.is_array() || constraint.size() != 3 ||
      !std::all_of(constraint.begin(), constraint.end(), [](const auto& part) { return part.is_string(); }))
    return wrong("is not a list of three texts");
  const auto name = constraint[0].get<std::string>();
  const auto kind = constraint[1].get<std::string>();
  const auto value = constraint[2].get<std::string>();
  auto& wanted = schedule_.task.resources.attributes;
  if (kind == "EQUALS") return wanted.push_back({name, {value}});
  if (kind != "LIKE" && kind != "UNLIKE") return wrong(fmt::format("has the unknown operator '{}'", kind));
  const auto pattern = Pattern::parse(value);
  if (!pattern)
    return wrong(
        fmt::format("has the pattern '{}', of which more is asked than '.', '.*', '.+' and '|'", value));
  if (machine_ == nullptr) return;
  const auto found = machine_->find(name);
  if (kind == "UNLIKE" && found == machine_->end()) return;  // nothing that it could be like
  std::vector<std::string> fitting;
  if (found != machine_->end())
    for (const auto& each : found->second)
      if (pattern->matches(each) == (kind == "LIKE")) fitting.push_back(each);
  if (fitting.empty())
    return wrong(fmt::format("holds on no machine: no '{}' is {} '{}'", name, kind, value));
  wanted.push_back({name, std::move(fitting)});
}

void JobReader::read_constraints() {
  const auto* list = in_.value("constraints");
  shown_["constraints"] = list == nullptr ? ordered_json::array() : ordered_json(*list);
  if (list == nullptr) return;
  if (!list->is_array()) return in_.mistake("constraints", "a list is expected");
  for (std::size_t i = 0; i < list->size(); ++i) constrain((*list)[i], i);
}

void JobReader::read_epsilon() {
  const auto epsilon = text("epsilon");
  if (epsilon.empty()) return;
  shown_["epsilon"] = epsilon;
  if (const auto period = workload::parse_period(epsilon); !period)
    in_.mistake("epsilon", period.error().message, period.error().hint);
  else
    schedule_.epsilon = period->time + std::chrono::days(period->days + 30 * period->months);
}

void JobReader::read_webhook() {
  const auto url = text("notificationUrl");
  if (url.empty()) return;
  shown_["notificationUrl"] = schedule_.webhook = url;
  if (const auto hook = workload::parse_webhook(url); !hook)
    in_.mistake("notificationUrl", hook.error().message, hook.error().hint);
}

/// Variables that tell a run of its job. The user's own do not hide them.
void JobReader::add_job_variables() {
  auto& environment = schedule_.task.environment.edit();
  environment["CHRONOS_JOB_OWNER"] = shown_["owner"];
  environment["CHRONOS_JOB_NAME"] = schedule_.name;
  environment["CHRONOS_RESOURCE_MEM"] = fmt::format("{}", shown_["mem"].get<double>());
  environment["CHRONOS_RESOURCE_CPU"] = fmt::format("{}", shown_["cpus"].get<double>());
  environment["CHRONOS_RESOURCE_DISK"] = fmt::format("{}", shown_["disk"].get<double>());
}

JobRequest JobReader::read() {
  auto& task = schedule_.task;
  schedule_.name = task.name = text("name");
  shown_["name"] = schedule_.name;
  if (!workload::is_schedule_name(schedule_.name))
    in_.mistake("name", "the job's name is invalid. Allowed names: '([\\w\\.-]+)'");
  read_command();
  shown_["shell"] = schedule_.shell;
  for (const auto* name : {"executor", "executorFlags", "taskInfoData", "owner", "ownerName", "description"})
    shown_[name] = text(name);
  if (!shown_["executor"].get<std::string>().empty())
    in_.mistake("executor", "executors of Mesos are not run", "give the command alone");
  schedule_.retries = static_cast<int>(in_.integer("retries", 0, 1000).value_or(kDefaultRetries));
  read_resources();
  schedule_.disabled = truth("disabled", false);
  schedule_.soft_error = truth("softError", false);
  schedule_.concurrent = truth("concurrent", false);
  for (const auto* name : {"dataProcessingJobType", "highPriority"}) shown_[name] = truth(name, false);
  read_fetch();
  read_environment();
  const auto run_as_user = text("runAsUser");
  const auto seconds = in_.integer("maxCompletionTime", 0, 1'000'000'000).value_or(0);
  shown_["maxCompletionTime"] = seconds;
  if (seconds > 0) task.timeout = std::chrono::seconds(seconds);
  read_container();
  read_constraints();
  read_epsilon();
  read_webhook();
  if (in_.value("async") != nullptr) shown_["async"] = truth("async", false);
  shown_["runAsUser"] = run_as_user;
  add_job_variables();
  schedule_.definition = to_text(shown_);
  return {std::move(schedule_), run_as_user};
}

Status read_times(const json& job, TimePoint now, Schedule& schedule) {
  const auto text = job.find("schedule");
  if (text == job.end() || !text->is_string())
    return fail(ErrorKind::kInvalid, "Cannot parse schedule '': there is none",
                "write it as for example R/2030-01-31T02:30:00Z/P1D, or 30 2 * * mon-fri", "/schedule");
  if (const auto zone = job.find("scheduleTimeZone"); zone != job.end() && zone->is_string())
    schedule.time_zone = *zone;
  DROVER_TRY(const auto repetition,
             workload::Repetition::parse(text->get_ref<const std::string&>(), schedule.time_zone, now));
  schedule.repetition = repetition.text_from(0);
  return {};
}

Status read_parents(const json& job, Schedule& schedule) {
  const auto parents = job.find("parents");
  if (parents != job.end() && parents->is_array() && parents->size() <= kMostParents)
    for (const auto& parent : *parents)
      if (parent.is_string()) schedule.parents.insert(parent.get<std::string>());
  if (!schedule.parents.empty()) return {};
  return fail(ErrorKind::kInternal, "Error, parent does not exist", "'parents' lists at least one job",
              "/parents");
}

}  // namespace

tl::expected<JobRequest, std::vector<Error>> read_job(std::string_view body, JobKind kind,
                                                      const Attributes* machine, TimePoint now) {
  const auto refuse = [](Error error) { return tl::unexpected(std::vector{std::move(error)}); };
  auto job = parse_json(body, "The job");
  if (!job) return refuse(job.error());
  if (!job->is_object()) return refuse({ErrorKind::kInvalid, "A job is a JSON object", "", ""});
  make_plain(*job);
  JobReader reader(*job, machine);
  auto request = reader.read();
  auto mistakes = reader.take_mistakes();
  const auto when = kind == JobKind::kScheduled ? read_times(*job, now, request.schedule)
                                                : read_parents(*job, request.schedule);
  if (!when) mistakes.insert(mistakes.begin(), when.error());
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return request;
}

Result<JobRequest> decode_job(std::string_view body, JobKind kind, const Attributes* machine, TimePoint now) {
  auto request = read_job(body, kind, machine, now);
  if (request) return std::move(*request);
  const auto& mistakes = request.error();
  return Failure(mistakes.size() == 1 ? mistakes.front() : join_mistakes(mistakes, "The job"));
}

}  // namespace drover::chronos
