// The container of an app, its volumes, its networks and its ports.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "marathon/app_reader.h"
#include "workload/docker_parameters.h"

namespace drover::marathon {

using nlohmann::json;
using workload::NetworkMode;
using workload::PortProtocol;

namespace {

constexpr std::size_t kMostPorts = 256;
constexpr std::size_t kLongestImage = 4096;
constexpr std::array<std::string_view, 2> kTypes = {"DOCKER", "MESOS"};
constexpr std::array<std::string_view, 3> kModes = {"host", "container/bridge", "container"};
constexpr std::array<std::string_view, 4> kPortProtocols = {"tcp", "udp", "udp,tcp", "tcp,udp"};

bool is_port_name(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && plain(name.front()) && plain(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '-'; });
}

PortProtocol protocol_of(std::size_t choice) {
  return choice == 0 ? PortProtocol::kTcp : choice == 1 ? PortProtocol::kUdp : PortProtocol::kBoth;
}

}  // namespace

void AppReader::container() {
  auto fields = fields_.object("container");
  if (!fields) {
    shown_.erase("container");  // of the wrong type, if it is there
    return;
  }
  json shown = *fields_.raw("container");
  const auto type = fields->choice("type", kTypes).value_or(0);
  docker_type_ = type == 0;
  app_.service.task.container_type =
      docker_type_ ? workload::ContainerType::kDocker : workload::ContainerType::kMesos;
  shown["type"] = kTypes[type];
  if (fields->has("appc")) fields->refuse("appc", "images of type AppC are not supported: use 'docker'");
  docker(*fields, shown);
  volumes(*fields, shown);
  if (!app_.service.task.resources.gpus.empty() && docker_type_ && options_.strict)
    fields_.refuse("", "GPU resources only work with the Mesos containerizer");
  shown_["container"] = std::move(shown);
}

void AppReader::docker(Fields& container, json& shown) {
  auto docker = container.object("docker");
  if (!docker) {
    if (docker_type_ && !container.has("docker")) container.refuse("docker", "not defined");
    return;
  }
  auto& image = shown["docker"];
  const auto name = docker->text("image", 1);
  if (!docker->has("image")) docker->wrong_type("image", "error.path.missing");
  if (name && (name->size() > kLongestImage || std::any_of(name->begin(), name->end(), [](unsigned char c) {
                 return c <= ' ' || c == 0x7f;
               })))
    docker->refuse("image", "must be the name of an image");
  has_image_ = true;
  app_.service.task.image = name;
  const bool force_pull = docker->flag("forcePullImage").value_or(false);
  image["forcePullImage"] = force_pull;
  if (force_pull) app_.service.task.pull = PullPolicy::kAlways;
  const bool privileged = docker->flag("privileged").value_or(false);
  image["privileged"] = privileged;
  app_.service.task.privileged = privileged;  // whether it may is the daemon's to say
  if (docker->has("pullConfig")) docker->refuse("pullConfig", "secrets are not supported");
  if (docker->has("credential")) docker->refuse("credential", "credentials are not supported");
  docker_parameters(*docker);
  if (!docker->has("parameters")) image["parameters"] = json::array();
}

void AppReader::docker_parameters(Fields& docker) {
  auto given = docker.objects("parameters");
  for (auto& parameter : given.value_or(std::vector<Fields>{})) {
    const auto key = parameter.text("key", 1);
    const auto value = parameter.text("value");
    for (const auto* field : {"key", "value"})
      if (!parameter.has(field)) parameter.wrong_type(field, "error.path.missing");
    if (!key || !value) continue;
    if (const auto read = workload::read_docker_parameter(*key, *value, app_.service.task); !read)
      parameter.refuse(read.error().path.substr(1),
                       fmt::format("{} ({})", read.error().message, read.error().hint));
  }
}

void AppReader::volumes(Fields& container, json& shown) {
  json list = json::array();
  auto given = container.objects("volumes");
  for (auto& fields : given.value_or(std::vector<Fields>{})) {
    workload::Volume volume;
    const auto inside = fields.text("containerPath", 1);
    if (!fields.has("containerPath")) fields.wrong_type("containerPath", "error.path.missing");
    volume.container_path = inside.value_or("");
    if (("/" + volume.container_path + "/").find("/../") != std::string::npos)
      fields.refuse("containerPath", "must not contain '..'");
    constexpr std::array<std::string_view, 2> kAccess = {"RW", "RO"};
    const auto mode = fields.choice("mode", kAccess).value_or(0);
    volume.read_only = mode == 1;
    for (const auto* kind : {"persistent", "external", "secret"})
      if (fields.has(kind))
        fields.refuse(kind, fmt::format("{} volumes are not supported: use 'hostPath'", kind));
    const bool other = fields.has("persistent") || fields.has("external") || fields.has("secret");
    if (!fields.has("hostPath") && !other) fields.wrong_type("hostPath", "error.path.missing");
    volume.host_path = fields.text("hostPath", 1).value_or("/");
    if (!volume.host_path.starts_with('/'))
      fields.refuse("hostPath", "must be an absolute path of the machine");
    list.push_back(
        {{"containerPath", volume.container_path}, {"hostPath", volume.host_path}, {"mode", kAccess[mode]}});
    app_.service.task.volumes.edit().push_back(std::move(volume));
  }
  shown["volumes"] = std::move(list);
}

void AppReader::networks() {
  auto container = fields_.object("container");
  const auto* mappings = container ? container->raw("portMappings") : nullptr;
  const bool any_mappings = mappings != nullptr && mappings->is_array() && !mappings->empty();
  auto& network = app_.service.task.network;
  auto given = fields_.objects("networks");
  json list = json::array();
  for (auto& fields : given.value_or(std::vector<Fields>{})) {
    const auto mode = fields.choice("mode", kModes).value_or(2);
    json shown = {{"mode", kModes[mode]}};
    const auto name = fields.text("name", 1);
    const auto labels = fields.text_map("labels");
    if (mode == 0 && (name || (labels && !labels->empty())))
      fields.refuse("", "Host networks may not have names or labels");
    if (name) shown["name"] = *name;
    if (labels) shown["labels"] = *labels;
    if (mode != 0) network.mode = NetworkMode::kBridge;
    list.push_back(std::move(shown));
  }
  if (list.size() > 1) fields_.refuse("networks", "a task is in one network only");
  if (list.empty()) {
    if (any_mappings) network.mode = NetworkMode::kBridge;
    list.push_back({{"mode", any_mappings ? "container/bridge" : "host"}});
  }
  shown_["networks"] = std::move(list);

  if (network.mode == NetworkMode::kHost) {
    if (any_mappings) container->refuse("portMappings", "portMappings are not allowed with host-networking");
    if (shown_.contains("container")) shown_["container"].erase("portMappings");
    port_definitions();
  } else {
    const auto* definitions = fields_.raw("portDefinitions");
    if (definitions != nullptr && !(definitions->is_array() && definitions->empty()))
      fields_.refuse("portDefinitions", "portDefinitions are only allowed with host-networking");
    shown_.erase("portDefinitions");
    port_mappings(container ? &*container : nullptr);
  }
  check_port_names();
}

workload::Port AppReader::port(Fields& fields, json& shown) {
  workload::Port port;
  const auto protocol = fields.choice("protocol", kPortProtocols).value_or(0);
  port.protocol = protocol_of(protocol);
  shown["protocol"] = kPortProtocols[protocol];
  port.labels = fields.text_map("labels").value_or(std::map<std::string, std::string>{});
  shown["labels"] = port.labels;
  if (const auto name = fields.text("name")) {
    port.name = *name;
    shown["name"] = *name;
    if (!is_port_name(*name))
      fields.refuse("name", "must fully match regular expression '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'");
  }
  return port;
}

void AppReader::port_definitions() {
  auto& ports = app_.service.task.network.ports;
  const bool required = fields_.flag("requirePorts").value_or(false);
  json list = json::array();
  auto given = fields_.objects("portDefinitions");
  std::set<int> seen;
  for (auto& fields : given.value_or(std::vector<Fields>{})) {
    json shown = json::object();
    auto port = this->port(fields, shown);
    const auto number = static_cast<int>(fields.whole("port", 0, kMaxPort).value_or(0));
    shown["port"] = number;
    if (required) port.host_port = number;
    if (number != 0 && !seen.insert(number).second)
      fields_.refuse("portDefinitions", "Ports must be unique.");
    ports.push_back(std::move(port));
    list.push_back(std::move(shown));
  }
  if (!given && !fields_.has("portDefinitions")) {
    ports.push_back({.name = "default"});
    list.push_back({{"port", 0}, {"protocol", "tcp"}, {"name", "default"}, {"labels", json::object()}});
  }
  // Where they are the numbers on the machine, 0 is left for it to choose.
  if (!required) assign_service_ports(list, "port");
  shown_["portDefinitions"] = std::move(list);
}

void AppReader::port_mappings(Fields* container) {
  auto& ports = app_.service.task.network.ports;
  const bool bridge = shown_["networks"].front()["mode"] == "container/bridge";
  json list = json::array();
  auto given = container != nullptr ? container->objects("portMappings") : std::nullopt;
  for (auto& fields : given.value_or(std::vector<Fields>{})) {
    json shown = json::object();
    auto port = this->port(fields, shown);
    port.container_port = static_cast<int>(fields.whole("containerPort", 0, kMaxPort).value_or(0));
    port.host_port = static_cast<int>(fields.whole("hostPort", 0, kMaxPort).value_or(0));
    shown["containerPort"] = port.container_port;
    if (bridge || fields.has("hostPort")) shown["hostPort"] = port.host_port;
    shown["servicePort"] = fields.whole("servicePort", 0, kMaxPort).value_or(0);
    if (const auto names = fields.texts("networkNames")) shown["networkNames"] = *names;
    ports.push_back(std::move(port));
    list.push_back(std::move(shown));
  }
  if (!given && !(container != nullptr && container->has("portMappings")) && bridge) {
    ports.push_back({.name = "default"});
    list.push_back({{"containerPort", 0},
                    {"hostPort", 0},
                    {"servicePort", 0},
                    {"protocol", "tcp"},
                    {"name", "default"},
                    {"labels", json::object()}});
  }
  assign_service_ports(list, "servicePort");
  if (!shown_.contains("container")) {
    if (list.empty()) return;
    shown_["container"] = {{"type", "MESOS"}, {"volumes", json::array()}};
    app_.service.task.container_type = workload::ContainerType::kMesos;
  }
  shown_["container"]["portMappings"] = std::move(list);
}

void AppReader::check_port_names() {
  const auto& ports = app_.service.task.network.ports;
  const std::string field =
      app_.service.task.network.mode == NetworkMode::kHost ? "portDefinitions" : "container/portMappings";
  if (ports.size() > kMostPorts) fields_.refuse(field, fmt::format("must have at most {} ports", kMostPorts));
  std::set<std::string> names;
  for (const auto& port : ports)
    if (!port.name.empty() && !names.insert(port.name).second)
      fields_.refuse(field, "Port names must be unique.");
}

/// Gives every port whose number is 0 one that no other app has: if it can be, one that this app had before.
void AppReader::assign_service_ports(json& ports, const char* name) {
  std::set<int> mine;
  for (const auto& port : ports) mine.insert(port[name].get<int>());
  auto before = own_ports_.begin();
  int next = kFirstServicePort;
  for (auto& port : ports) {
    if (port[name] != 0) continue;
    while (before != own_ports_.end() && mine.contains(*before)) ++before;
    while (mine.contains(next) || options_.service_ports.contains(next)) ++next;
    const int number = before != own_ports_.end() ? *before : next;
    if (number == next && next > kLastServicePort) return fields_.refuse("", "no service port is free");
    mine.insert(number);
    port[name] = number;
  }
}

}  // namespace drover::marathon
