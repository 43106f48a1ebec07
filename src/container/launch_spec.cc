#include "container/launch_spec.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr int kLaunchSpecFormat = 1;
constexpr auto kMaxInteger = std::numeric_limits<std::int64_t>::max();

void read_root(Decoder decoder, RootPlan& root) {
  root.layers = decoder.string_list("layers").value_or(root.layers);
  root.read_only = decoder.boolean("read_only").value_or(root.read_only);
  root.label = decoder.string("label").value_or("");
  root.hidden = decoder.string_list("hidden").value_or(root.hidden);
  decoder.finish();
}

void read_logs(Decoder decoder, LogLimits& logs) {
  logs.file_bytes = static_cast<std::uint64_t>(
      decoder.integer("file_bytes", 1, kMaxInteger).value_or(static_cast<std::int64_t>(logs.file_bytes)));
  logs.files = static_cast<int>(decoder.integer("files", 1, 1000).value_or(logs.files));
  decoder.finish();
}

json encode_volumes(const std::vector<VolumePlan>& volumes) {
  auto list = json::array();
  for (const auto& volume : volumes)
    list.push_back({{"host_path", volume.host_path},
                    {"destination", volume.destination},
                    {"sandbox_path", volume.sandbox_path},
                    {"read_only", volume.read_only},
                    {"kernel", volume.kernel}});
  return list;
}

json encode_binds(const std::vector<BindPlan>& binds) {
  auto list = json::array();
  for (const auto& bind : binds)
    list.push_back({{"source", bind.source}, {"destination", bind.destination}, {"options", bind.options}});
  return list;
}

BindPlan read_bind(Decoder decoder) {
  BindPlan bind;
  bind.source = decoder.string("source").value_or("");
  bind.destination = decoder.string("destination").value_or("");
  bind.options = decoder.string_list("options").value_or(bind.options);
  decoder.finish();
  return bind;
}

VolumePlan read_volume(Decoder decoder) {
  VolumePlan volume;
  volume.host_path = decoder.string("host_path").value_or("");
  volume.destination = decoder.string("destination").value_or("");
  volume.sandbox_path = decoder.string("sandbox_path").value_or("");
  volume.read_only = decoder.boolean("read_only").value_or(true);
  volume.kernel = decoder.boolean("kernel").value_or(false);
  decoder.finish();
  return volume;
}

workload::Terminal read_terminal(Decoder decoder) {
  workload::Terminal terminal;
  const auto side = [&](const char* name, int usual) {
    return static_cast<int>(decoder.integer(name, 1, workload::kMaxTerminalSide).value_or(usual));
  };
  terminal.rows = side("rows", terminal.rows);
  terminal.columns = side("columns", terminal.columns);
  decoder.finish();
  return terminal;
}

json encode_network(const NetworkPlan& network) {
  auto forwards = json::array();
  for (const auto& forward : network.forwards)
    forwards.push_back(
        {{"host_port", forward.host_port}, {"container_port", forward.container_port}, {"udp", forward.udp}});
  return {{"forwards", std::move(forwards)}};
}

NetworkPlan read_network(Decoder decoder) {
  NetworkPlan network;
  for (auto& entry : decoder.objects("forwards")) {
    Forward forward;
    forward.host_port = static_cast<int>(entry.integer("host_port", 1, 65535).value_or(0));
    forward.container_port = static_cast<int>(entry.integer("container_port", 1, 65535).value_or(0));
    forward.udp = entry.boolean("udp").value_or(false);
    entry.finish();
    network.forwards.push_back(forward);
  }
  decoder.finish();
  return network;
}

json encode_docker(const DockerSpec& docker) {
  return {{"socket", docker.socket},
          {"api_version", docker.api_version},
          {"body", docker.body},
          {"patience_ms", docker.patience.count()}};
}

DockerSpec read_docker(Decoder decoder) {
  DockerSpec docker;
  docker.socket = decoder.string("socket").value_or("");
  docker.api_version = decoder.string("api_version").value_or("");
  docker.body = decoder.string("body").value_or("");
  if (auto ms = decoder.integer("patience_ms", 0, kMaxInteger))
    docker.patience = std::chrono::milliseconds(*ms);
  decoder.finish();
  return docker;
}

}  // namespace

json encode_user(const User& user) {
  return {{"uid", user.uid}, {"gid", user.gid}, {"groups", user.groups}, {"name", user.name}};
}

User read_user(Decoder decoder) {
  constexpr auto kMaxId = std::numeric_limits<uid_t>::max();
  User user;
  user.uid = static_cast<uid_t>(decoder.integer("uid", 0, kMaxId).value_or(kMaxId));
  user.gid = static_cast<gid_t>(decoder.integer("gid", 0, kMaxId).value_or(kMaxId));
  user.name = decoder.string("name").value_or("");
  if (const auto* groups = decoder.value("groups"); groups != nullptr && groups->is_array())
    for (const auto& group : *groups)
      if (group.is_number_unsigned()) user.groups.push_back(group.get<gid_t>());
  decoder.finish();
  return user;
}

std::string encode(const LaunchSpec& spec) {
  json value = {
      {"format", kLaunchSpecFormat},
      {"task_id", spec.task_id},
      {"attempt", spec.attempt},
      {"runtime", spec.runtime},
      {"cgroup", spec.cgroup},
      {"uid", spec.uid},
      {"gid", spec.gid},
      {"grace_ms", spec.grace.count()},
      {"start_timeout_ms", spec.start_timeout.count()},
      {"root",
       {{"layers", spec.root.layers},
        {"read_only", spec.root.read_only},
        {"hidden", spec.root.hidden},
        {"label", spec.root.label}}},
      {"mounts", spec.mounts},
      {"working_directory", spec.working_directory},
      {"command", spec.command},
      {"logs", {{"file_bytes", spec.logs.file_bytes}, {"files", spec.logs.files}}},
  };
  if (spec.takes_input) value["takes_input"] = true;
  if (spec.terminal) value["terminal"] = {{"rows", spec.terminal->rows}, {"columns", spec.terminal->columns}};
  if (spec.ids.maps()) value["first_id"] = spec.ids.first;
  if (!spec.devices.empty()) value["devices"] = encode_devices(spec.devices);
  if (!spec.binds.empty()) value["binds"] = encode_binds(spec.binds);
  if (!spec.volumes.empty()) {
    value["volumes"] = encode_volumes(spec.volumes);
    value["volume_user"] = encode_user(spec.volume_user);
  }
  if (spec.docker) value["docker"] = encode_docker(*spec.docker);
  if (spec.network) value["network"] = encode_network(*spec.network);
  return to_text(value);
}

Result<LaunchSpec> decode_launch_spec(std::string_view text) {
  constexpr auto kMaxId = std::numeric_limits<uid_t>::max();
  DROVER_TRY(const auto value, parse_json(text, "The shim's order"));
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  decoder.format(kLaunchSpecFormat);
  LaunchSpec spec;
  spec.task_id = decoder.string("task_id").value_or("");
  spec.attempt = static_cast<int>(decoder.integer("attempt", 0, std::numeric_limits<int>::max()).value_or(0));
  spec.runtime = decoder.string("runtime").value_or("");
  spec.cgroup = decoder.string("cgroup").value_or("");
  spec.uid = static_cast<uid_t>(decoder.integer("uid", 0, kMaxId).value_or(0));
  spec.gid = static_cast<gid_t>(decoder.integer("gid", 0, kMaxId).value_or(0));
  if (auto ms = decoder.integer("grace_ms", 0, kMaxInteger)) spec.grace = std::chrono::milliseconds(*ms);
  if (auto ms = decoder.integer("start_timeout_ms", 0, kMaxInteger))
    spec.start_timeout = std::chrono::milliseconds(*ms);
  if (auto root = decoder.object("root")) read_root(std::move(*root), spec.root);
  if (auto logs = decoder.object("logs")) read_logs(std::move(*logs), spec.logs);
  spec.mounts = decoder.string("mounts").value_or("");
  spec.working_directory = decoder.string("working_directory").value_or("");
  spec.command = decoder.string("command").value_or("");
  spec.takes_input = decoder.boolean("takes_input").value_or(false);
  if (auto terminal = decoder.object("terminal")) spec.terminal = read_terminal(std::move(*terminal));
  spec.ids.first =
      static_cast<std::uint32_t>(decoder.integer("first_id", 0, kMaxId - IdMap::kCount).value_or(0));
  for (auto& device : decoder.objects("devices")) spec.devices.push_back(read_device(std::move(device)));
  for (auto& bind : decoder.objects("binds")) spec.binds.push_back(read_bind(std::move(bind)));
  for (auto& volume : decoder.objects("volumes")) spec.volumes.push_back(read_volume(std::move(volume)));
  if (auto user = decoder.object("volume_user")) spec.volume_user = read_user(std::move(*user));
  if (auto network = decoder.object("network")) spec.network = read_network(std::move(*network));
  if (auto docker = decoder.object("docker")) spec.docker = read_docker(std::move(*docker));
  if (spec.task_id.empty() || spec.cgroup.empty() || spec.runtime.empty() == !spec.docker)
    decoder.mistake("task_id", "task, cgroup, and either the runtime or the engine must be named");
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The shim's order"));
  return spec;
}

}  // namespace drover::container
