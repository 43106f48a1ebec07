#include "cli/attachment_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace drover::cli {
namespace {

using nlohmann::json;

/// The daemon has another working directory: it gets paths in full.
std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

Result<json> volume_of(const std::string& text) {
  const auto bad = [&] {
    return fail(ErrorKind::kInvalid, fmt::format("--volume: '{}' is not of the form HOST:CONTAINER", text),
                "write for example --volume /data:/data:ro");
  };
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon == 0) return bad();
  auto inside = text.substr(colon + 1);
  bool read_only = false;
  if (const auto mode = inside.rfind(':'); mode != std::string::npos) {
    const auto word = inside.substr(mode + 1);
    if (word != "ro" && word != "rw") return bad();
    read_only = word == "ro";
    inside.resize(mode);
  }
  if (inside.empty()) return bad();
  return json{
      {"host_path", absolute(text.substr(0, colon))}, {"container_path", inside}, {"read_only", read_only}};
}

std::optional<int> port_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0 && value <= 65535 ? std::optional(value) : std::nullopt;
}

Result<json> port_of(const std::string& text) {
  std::string_view rest = text;
  json port = {{"protocol", "tcp"}};
  if (const auto slash = rest.find('/'); slash != rest.npos) {
    port["protocol"] = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  const auto colon = rest.find(':');
  const auto inside = port_number(colon == rest.npos ? rest : rest.substr(colon + 1));
  const auto outside = colon == rest.npos ? 0 : port_number(rest.substr(0, colon)).value_or(-1);
  if (!inside || outside < 0)
    return fail(ErrorKind::kInvalid, fmt::format("--publish: '{}' is not of the form [HOST:]PORT", text),
                "write for example --publish 80, --publish 31080:80 or --publish 53/udp");
  port["container_port"] = *inside;
  if (outside > 0) port["host_port"] = outside;
  return port;
}

}  // namespace

Status add_attachments(const AttachmentFlags& flags, json& body) {
  for (const auto& uri : flags.fetch)
    body["fetch"].push_back(uri.empty() || uri.find("://") != std::string::npos ? uri : absolute(uri));
  for (const auto& text : flags.volumes) {
    DROVER_TRY(auto volume, volume_of(text));
    body["volumes"].push_back(std::move(volume));
  }
  if (!flags.devices.empty()) body["devices"] = flags.devices;
  if (!flags.network.empty()) body["network"]["mode"] = flags.network;
  if (flags.published.empty()) return {};
  if (flags.network.empty()) body["network"]["mode"] = "bridge";
  for (const auto& text : flags.published) {
    DROVER_TRY(auto port, port_of(text));
    body["network"]["ports"].push_back(std::move(port));
  }
  return {};
}

}  // namespace drover::cli
