#include "cdi/write.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace drover::cdi {
namespace {

using Json = nlohmann::ordered_json;

Json written(const DeviceNode& node);
Json written(const Mount& mount);
Json written(const Hook& hook);
Json written(const NetDevice& device);
Json written(const Device& device);

/// What is empty is left out, as the interface's own writer does.
template <typename T>
void put(Json& object, const char* name, const T& value) {
  if (!value.empty()) object[name] = value;
}
template <typename T>
void put(Json& object, const char* name, const std::optional<T>& value) {
  if (value) object[name] = *value;
}
void put(Json& object, const char* name, bool value) {
  if (value) object[name] = true;
}

Json written(const DeviceNode& node) {
  Json object{{"path", node.path}};
  put(object, "hostPath", node.host_path);
  put(object, "type", node.type);
  put(object, "major", node.major);
  put(object, "minor", node.minor);
  put(object, "fileMode", node.file_mode);
  put(object, "permissions", node.permissions);
  put(object, "uid", node.uid);
  put(object, "gid", node.gid);
  return object;
}

Json written(const Mount& mount) {
  Json object{{"hostPath", mount.host_path}, {"containerPath", mount.container_path}};
  put(object, "type", mount.type);
  put(object, "options", mount.options);
  return object;
}

Json written(const Hook& hook) {
  Json object{{"hookName", hook.name}, {"path", hook.path}};
  put(object, "args", hook.arguments);
  put(object, "env", hook.environment);
  put(object, "timeout", hook.timeout_seconds);
  return object;
}

Json written(const NetDevice& device) {
  return {{"hostInterfaceName", device.host_interface}, {"name", device.name}};
}

Json written(const IntelRdt& rdt) {
  Json object = Json::object();
  put(object, "closID", rdt.clos_id);
  put(object, "l3CacheSchema", rdt.l3_cache_schema);
  put(object, "memBwSchema", rdt.memory_bandwidth_schema);
  put(object, "enableCMT", rdt.enable_cmt);
  put(object, "enableMBM", rdt.enable_mbm);
  put(object, "schemata", rdt.schemata);
  put(object, "enableMonitoring", rdt.enable_monitoring);
  return object;
}

template <typename T>
void put_list(Json& object, const char* name, const std::vector<T>& items) {
  for (const auto& item : items) object[name].push_back(written(item));
}

Json written(const Edits& edits) {
  Json object = Json::object();
  put(object, "env", edits.environment);
  put_list(object, "deviceNodes", edits.device_nodes);
  put_list(object, "netDevices", edits.net_devices);
  put_list(object, "mounts", edits.mounts);
  put_list(object, "hooks", edits.hooks);
  if (edits.intel_rdt) object["intelRdt"] = written(*edits.intel_rdt);
  put(object, "additionalGids", edits.additional_gids);
  return object;
}

Json written(const Device& device) {
  Json object{{"name", device.name}};
  put(object, "annotations", device.annotations);
  object["containerEdits"] = written(device.edits);
  return object;
}

Json written(const Specification& specification) {
  Json object{{"cdiVersion", specification.version}, {"kind", specification.kind}};
  put(object, "annotations", specification.annotations);
  put_list(object, "devices", specification.devices);
  if (!specification.edits.empty()) object["containerEdits"] = written(specification.edits);
  return object;
}

/// JSON is YAML but for characters that YAML takes for line ends or does not allow: those of two and three
/// bytes are written by their numbers, and so is the one of ASCII. `json` is UTF-8.
std::string yaml_of(const std::string& json) {
  std::string text;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto first = static_cast<unsigned char>(json[i]);
    const auto next = [&] { return static_cast<unsigned char>(json[++i]) & 0x3fU; };
    if (first == 0x7f)
      text += "\\u007f";
    else if (first >= 0xe0 && first < 0xf0) {
      const auto high = (first & 0xfU) << 12 | next() << 6;
      text += fmt::format("\\u{:04x}", high | next());
    } else if (first >= 0xc0 && first < 0xe0) {
      text += fmt::format("\\u{:04x}", (first & 0x1fU) << 6 | next());
    } else {
      text += json[i];
    }
  }
  return text;
}

/// Texts stand in quotes, as in JSON, so that none can be read as something else.
void append_yaml(std::string& out, const Json& value, std::size_t indent, bool in_list) {
  const std::string margin(indent, ' ');
  if (!value.is_structured() || value.empty()) {
    out += ' ' + yaml_of(to_text(value)) + '\n';
    return;
  }
  if (!in_list) out += '\n';
  if (value.is_array()) {
    for (const auto& item : value) {
      out += margin + '-';
      append_yaml(out, item, indent + 2, true);
    }
    return;
  }
  bool first = in_list;
  for (const auto& [name, item] : value.items()) {
    out += first ? std::string(" ") : margin;
    first = false;
    out += yaml_of(to_text(Json(name))) + ':';
    append_yaml(out, item, indent + 2, false);
  }
}

}  // namespace

Format format_of_file(const std::string& name) {
  return name.ends_with(".yaml") ? Format::kYaml : Format::kJson;
}

std::string write_specification(const Specification& specification, Format format) {
  const auto json = written(specification);
  if (format == Format::kJson) return to_text(json, 2) + "\n";
  std::string text = "---";
  append_yaml(text, json, 0, false);
  return text;
}

}  // namespace drover::cdi
