#include "workload/attachment_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cdi/names.h"

namespace drover::workload {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxPath = 4095;
constexpr int kMaxPort = 65535;
constexpr std::array<std::string_view, 2> kModes = {"host", "bridge"};
constexpr std::array<std::string_view, 3> kProtocols = {"tcp", "udp", "both"};

bool is_path(const std::string& text) {
  return !text.empty() && text.size() <= kMaxPath && text.find('\0') == std::string::npos;
}

/// No part of it is "..": it leads down.
bool leads_down(std::string_view path) {
  return ("/" + std::string(path) + "/").find("/../") == std::string::npos;
}

void decode_fetch(Decoder& decoder, Task& task) {
  const auto* given = decoder.value("fetch");
  if (given == nullptr) return;
  const bool words =
      given->is_array() && !given->empty() &&
      std::all_of(given->begin(), given->end(), [](const json& entry) { return entry.is_string(); });
  std::vector<Fetch> files;
  if (words) {
    for (const auto& entry : *given) files.push_back({.uri = entry.get<std::string>()});
  } else {
    for (auto& entry : decoder.objects("fetch")) {
      Fetch fetch;
      fetch.uri = entry.string("uri").value_or("");
      fetch.extract = entry.boolean("extract").value_or(fetch.extract);
      fetch.executable = entry.boolean("executable").value_or(fetch.executable);
      fetch.cache = entry.boolean("cache").value_or(fetch.cache);
      fetch.output_file = entry.string("output_file").value_or("");
      if (!fetch.output_file.empty() &&
          (!is_path(fetch.output_file) || fetch.output_file.front() == '/' || !leads_down(fetch.output_file)))
        entry.mistake("output_file", "it must be a path inside of the sandbox");
      entry.finish();
      files.push_back(std::move(fetch));
    }
  }
  if (files.size() > kMaxFetch)
    decoder.mistake("fetch", fmt::format("at most {} files can be fetched", kMaxFetch));
  if (!std::all_of(files.begin(), files.end(), [](const Fetch& fetch) { return is_path(fetch.uri); }))
    decoder.mistake("fetch", "a file to fetch needs a uri",
                    "write http://…, https://…, file:///… or an absolute path");
  task.fetch = std::move(files);
}

void decode_volumes(Decoder& decoder, Task& task) {
  auto entries = decoder.objects("volumes");
  if (entries.size() > kMaxVolumes)
    return decoder.mistake("volumes", fmt::format("a task has at most {} volumes", kMaxVolumes));
  for (auto& entry : entries) {
    Volume volume;
    volume.container_path = entry.string("container_path").value_or("");
    volume.host_path = entry.string("host_path").value_or("");
    volume.read_only = entry.boolean("read_only").value_or(false);
    if (!is_path(volume.container_path) || !leads_down(volume.container_path))
      entry.mistake("container_path", "it must be an absolute path, or one inside of the sandbox");
    if (!is_path(volume.host_path) || volume.host_path.front() != '/')
      entry.mistake("host_path", "it must be an absolute path on the machine");
    entry.finish();
    task.volumes.edit().push_back(std::move(volume));
  }
}

void decode_devices(Decoder& decoder, Task& task) {
  task.devices = decoder.string_list("devices").value_or(task.devices);
  if (task.devices.size() > kMaxDevices)
    decoder.mistake("devices", fmt::format("a task has at most {} devices", kMaxDevices));
  for (const auto& device : task.devices)
    if (const auto name = cdi::parse_device_name(device); !name)
      decoder.mistake("devices", name.error().message, name.error().hint);
}

Port decode_port(Decoder& entry) {
  Port port;
  port.name = entry.string("name").value_or("");
  if (const auto chosen = entry.choice("protocol", kProtocols))
    port.protocol = static_cast<PortProtocol>(*chosen);
  port.container_port = static_cast<int>(entry.integer("container_port", 0, kMaxPort).value_or(0));
  port.host_port = static_cast<int>(entry.integer("host_port", 0, kMaxPort).value_or(0));
  port.labels = entry.string_map("labels").value_or(port.labels);
  entry.finish();
  return port;
}

}  // namespace

void decode_attachments(Decoder& decoder, Task& task) {
  decode_fetch(decoder, task);
  decode_volumes(decoder, task);
  decode_devices(decoder, task);
  if (auto network = decoder.object("network")) {
    if (const auto chosen = network->choice("mode", kModes))
      task.network.mode = static_cast<NetworkMode>(*chosen);
    auto ports = network->objects("ports");
    if (ports.size() > kMaxPorts)
      network->mistake("ports", fmt::format("a task has at most {} ports", kMaxPorts));
    else
      for (auto& entry : ports) task.network.ports.push_back(decode_port(entry));
    network->finish();
  }
}

}  // namespace drover::workload
