#include "cdi/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/decode.h"
#include "base/shorten.h"
#include "base/yaml.h"
#include "cdi/names.h"

namespace drover::cdi {
namespace {

using nlohmann::json;
using Mistakes = std::vector<Error>;

constexpr std::int64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::array<std::string_view, 6> kHookNames = {"prestart",       "createRuntime", "createContainer",
                                                        "startContainer", "poststart",     "poststop"};

std::string text_or_empty(Decoder& decoder, const char* name) {
  return decoder.string(name).value_or("");
}

/// Absolute, and nothing in it that the system would not take for a path.
std::string absolute_path(Decoder& decoder, const char* name) {
  const auto path = decoder.string(name);
  if (!path || path->empty()) {
    decoder.mistake(name, "a path is missing here");
    return "";
  }
  if (!path->starts_with('/') || path->find('\0') != std::string::npos)
    decoder.mistake(name, fmt::format("'{}' is not an absolute path", shortened(*path)));
  return *path;
}

std::vector<std::string> assignments(Decoder& decoder, const char* name) {
  auto list = decoder.string_list(name).value_or(std::vector<std::string>{});
  for (const auto& each : list)
    if (each.find('=') == 0 || each.find('=') == std::string::npos || each.find('\0') != std::string::npos)
      decoder.mistake(name, fmt::format("'{}' is not of the form NAME=value", shortened(each)));
  return list;
}

std::optional<std::uint32_t> number32(Decoder& decoder, const char* name) {
  const auto number = decoder.integer(name, 0, kMost32);
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

DeviceNode decode_node(Decoder& decoder) {
  DeviceNode node;
  node.path = absolute_path(decoder, "path");
  if (decoder.value("hostPath") != nullptr) node.host_path = absolute_path(decoder, "hostPath");
  node.type = text_or_empty(decoder, "type");
  if (node.type.size() > 1 || std::string_view("bcup").find(node.type) == std::string_view::npos)
    decoder.mistake("type", fmt::format("'{}' is no type of device: b, c, u or p", shortened(node.type)));
  node.major = decoder.integer("major", 0, kMost32);
  node.minor = decoder.integer("minor", 0, kMost32);
  node.file_mode = number32(decoder, "fileMode");
  node.permissions = text_or_empty(decoder, "permissions");
  if (node.permissions != "none" && node.permissions.find_first_not_of("rwm") != std::string::npos)
    decoder.mistake("permissions",
                    fmt::format("'{}' should be of the letters r, w and m", shortened(node.permissions)));
  node.uid = number32(decoder, "uid");
  node.gid = number32(decoder, "gid");
  decoder.finish();
  return node;
}

Mount decode_mount(Decoder& decoder) {
  Mount mount;
  mount.host_path = text_or_empty(decoder, "hostPath");
  if (mount.host_path.empty()) decoder.mistake("hostPath", "a path is missing here");
  mount.container_path = absolute_path(decoder, "containerPath");
  mount.type = text_or_empty(decoder, "type");
  mount.options = decoder.string_list("options").value_or(std::vector<std::string>{});
  decoder.finish();
  return mount;
}

Hook decode_hook(Decoder& decoder) {
  Hook hook;
  hook.name = text_or_empty(decoder, "hookName");
  if (std::ranges::find(kHookNames, hook.name) == kHookNames.end())
    decoder.mistake("hookName", fmt::format("'{}' is no hook of a container", shortened(hook.name)),
                    fmt::format("there are {}", fmt::join(kHookNames, ", ")));
  hook.path = absolute_path(decoder, "path");
  hook.arguments = decoder.string_list("args").value_or(std::vector<std::string>{});
  hook.environment = assignments(decoder, "env");
  if (const auto timeout = decoder.integer("timeout", 1, std::numeric_limits<int>::max()))
    hook.timeout_seconds = static_cast<int>(*timeout);
  decoder.finish();
  return hook;
}

NetDevice decode_net_device(Decoder& decoder) {
  NetDevice device{text_or_empty(decoder, "hostInterfaceName"), text_or_empty(decoder, "name")};
  if (device.host_interface.empty()) decoder.mistake("hostInterfaceName", "a name is missing here");
  if (device.name.empty()) decoder.mistake("name", "a name is missing here");
  decoder.finish();
  return device;
}

IntelRdt decode_rdt(Decoder& decoder) {
  IntelRdt rdt;
  rdt.clos_id = text_or_empty(decoder, "closID");
  if (rdt.clos_id == "." || rdt.clos_id == ".." || rdt.clos_id.size() >= 4096 ||
      (rdt.clos_id != "/" && rdt.clos_id.find_first_of("/\n") != std::string::npos))
    decoder.mistake("closID", "it is not the name of a folder");
  rdt.l3_cache_schema = text_or_empty(decoder, "l3CacheSchema");
  rdt.memory_bandwidth_schema = text_or_empty(decoder, "memBwSchema");
  rdt.enable_cmt = decoder.boolean("enableCMT").value_or(false);
  rdt.enable_mbm = decoder.boolean("enableMBM").value_or(false);
  rdt.schemata = decoder.string_list("schemata").value_or(std::vector<std::string>{});
  rdt.enable_monitoring = decoder.boolean("enableMonitoring").value_or(false);
  decoder.finish();
  return rdt;
}

std::vector<std::uint32_t> decode_gids(Decoder& decoder) {
  std::vector<std::uint32_t> gids;
  const auto* list = decoder.value("additionalGids");
  if (list == nullptr) return gids;
  const auto is_gid = [](const json& gid) { return gid.is_number_integer() && gid >= 0 && gid <= kMost32; };
  if (!list->is_array() || !std::all_of(list->begin(), list->end(), is_gid)) {
    decoder.mistake("additionalGids", "a list of group numbers is expected here");
    return gids;
  }
  for (const auto& gid : *list) gids.push_back(gid.get<std::uint32_t>());
  return gids;
}

template <typename T>
std::vector<T> decode_list(Decoder& decoder, const char* name, T (*decode_one)(Decoder&)) {
  std::vector<T> list;
  for (auto& item : decoder.objects(name)) list.push_back(decode_one(item));
  return list;
}

Edits decode_edits(Decoder& decoder) {
  Edits edits;
  edits.environment = assignments(decoder, "env");
  edits.device_nodes = decode_list(decoder, "deviceNodes", decode_node);
  edits.net_devices = decode_list(decoder, "netDevices", decode_net_device);
  edits.mounts = decode_list(decoder, "mounts", decode_mount);
  edits.hooks = decode_list(decoder, "hooks", decode_hook);
  if (auto rdt = decoder.object("intelRdt")) edits.intel_rdt = decode_rdt(*rdt);
  edits.additional_gids = decode_gids(decoder);
  decoder.finish();
  return edits;
}

Device decode_device(Decoder& decoder) {
  Device device;
  device.name = text_or_empty(decoder, "name");
  if (const auto good = check_name(device.name); !good) decoder.mistake("name", good.error().message);
  device.annotations = decoder.string_map("annotations").value_or(std::map<std::string, std::string>{});
  if (auto edits = decoder.object("containerEdits")) device.edits = decode_edits(*edits);
  if (device.edits.empty())
    decoder.mistake("containerEdits", fmt::format("the device '{}' does nothing", shortened(device.name)));
  decoder.finish();
  return device;
}

void check_version(Decoder& decoder, const Specification& specification) {
  if (!is_known_version(specification.version)) {
    decoder.mistake("cdiVersion", fmt::format("'{}' is no version of CDI that is known here",
                                              shortened(specification.version)));
    return;
  }
  const auto required = required_version(specification);
  if (is_older(specification.version, required))
    decoder.mistake("cdiVersion", fmt::format("what is used in it needs version {}, not {}", required,
                                              specification.version));
}

void check_devices(Decoder& decoder, const Specification& specification) {
  if (specification.devices.empty()) decoder.mistake("devices", "there is no device in it");
  std::set<std::string> names;
  for (const auto& device : specification.devices)
    if (!names.insert(device.name).second)
      decoder.mistake("devices", fmt::format("the device '{}' stands here twice", shortened(device.name)));
}

Result<json> parse(std::string_view text, std::string_view what) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return parse_json(text, what);
  return parse_yaml(text, what);
}

}  // namespace

Result<Specification> decode_specification(std::string_view text, std::string_view what) {
  if (text.size() > kMaxSpecificationBytes)
    return fail(ErrorKind::kInvalid,
                fmt::format("{} is larger than {} MiB", what, kMaxSpecificationBytes >> 20));
  DROVER_TRY(const auto document, parse(text, what));
  if (!document.is_object())
    return fail(ErrorKind::kInvalid, fmt::format("{} is no CDI specification: it holds no fields", what));
  Mistakes mistakes;
  Decoder decoder(document, mistakes);
  Specification specification;
  specification.version = text_or_empty(decoder, "cdiVersion");
  specification.kind = text_or_empty(decoder, "kind");
  if (const auto good = check_kind(specification.kind); !good) decoder.mistake("kind", good.error().message);
  specification.annotations =
      decoder.string_map("annotations").value_or(std::map<std::string, std::string>{});
  specification.devices = decode_list(decoder, "devices", decode_device);
  if (auto edits = decoder.object("containerEdits")) specification.edits = decode_edits(*edits);
  check_devices(decoder, specification);
  check_version(decoder, specification);
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, what));
  return specification;
}

}  // namespace drover::cdi
