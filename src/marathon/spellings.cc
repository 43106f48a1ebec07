#include "marathon/spellings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

namespace drover::marathon {
namespace {

using nlohmann::json;

constexpr std::array kOnlyInAnswers = {
    "tasksStaged", "tasksRunning",    "tasksHealthy",          "tasksUnhealthy", "deployments", "tasks",
    "version",     "lastTaskFailure", "readinessCheckResults", "versionInfo",    "taskStats"};

/// What Mesos' fetcher unpacks when it is told nothing else.
constexpr std::array<std::string_view, 7> kArchives = {".tgz", ".tar.gz", ".tbz2", ".tar.bz2",
                                                       ".txz", ".tar.xz", ".zip"};

/// The member `name` of an object, taken out of it; null when there is none.
json take(json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  if (found == object.end()) return nullptr;
  auto value = std::move(*found);
  object.erase(found);
  return value;
}

bool filled(const json& value) {
  return value.is_array() ? !value.empty() : !value.is_null();
}

void uris(json& app, Mistakes& mistakes) {
  auto given = take(app, "uris");
  if (!filled(given)) return;
  if (app.contains("fetch") && filled(app["fetch"])) {
    mistakes.broken_rule("/uris", "may not be set in conjunction with fetch");
    return;
  }
  if (!given.is_array()) {
    mistakes.wrong_type("/uris", "error.expected.jsarray");
    return;
  }
  auto& fetch = app["fetch"] = json::array();
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_string()) {
      mistakes.wrong_type("/uris(" + std::to_string(i) + ")", "error.expected.jsstring");
      continue;
    }
    const auto uri = given[i].get<std::string>();
    const bool archive =
        std::any_of(kArchives.begin(), kArchives.end(), [&](auto end) { return uri.ends_with(end); });
    fetch.push_back({{"uri", uri}, {"extract", archive}});
  }
}

void add_network(json& app, json network, const char* otherwise, Mistakes& mistakes) {
  if (app.contains("networks") && filled(app["networks"]))
    mistakes.broken_rule("/", otherwise);
  else
    app["networks"] = json::array({std::move(network)});
}

void docker_network(json& app, const std::string& user_network, Mistakes& mistakes) {
  const auto given = take(app["container"]["docker"], "network");
  if (given.is_null()) return;
  constexpr auto kBoth = "must not specify both container.docker.network and networks";
  const auto word = given.is_string() ? given.get<std::string>() : "";
  if (word == "BRIDGE") {
    add_network(app, {{"mode", "container/bridge"}}, kBoth, mistakes);
  } else if (word == "HOST") {
    add_network(app, {{"mode", "host"}}, kBoth, mistakes);
  } else if (word == "USER") {
    json network = {{"mode", "container"}};
    if (!user_network.empty()) network["name"] = user_network;
    add_network(app, std::move(network), kBoth, mistakes);
  } else if (word == "NONE") {
    mistakes.broken_rule("/container/docker/network",
                         "a container without a network is not supported: use BRIDGE or HOST");
  } else {
    mistakes.wrong_type("/container/docker/network",
                        given.is_string() ? "error.unknown.enum.literal" : "error.expected.jsstring");
  }
}

void docker(json& app, const std::string& user_network, Mistakes& mistakes) {
  if (!app.contains("container") || !app["container"].is_object()) return;
  auto& container = app["container"];
  if (!container.contains("docker") || !container["docker"].is_object()) return;
  auto mappings = take(container["docker"], "portMappings");
  if (!mappings.is_null()) {
    if (!container.contains("portMappings") || !filled(container["portMappings"]))
      container["portMappings"] = std::move(mappings);
    else if (filled(mappings))
      mistakes.broken_rule("/container/docker/portMappings",
                           "must not specify both container.docker.portMappings and container.portMappings");
  }
  docker_network(app, user_network, mistakes);
}

/// {"networkName": …, "labels": …, "discovery": {"ports": [{"number", "name", "protocol", "labels"}]}};
/// returns the name of the network.
std::string ip_address(json& app, Mistakes& mistakes) {
  const auto given = take(app, "ipAddress");
  if (given.is_null()) return "";
  if (!given.is_object()) {
    mistakes.wrong_type("/ipAddress", "error.expected.jsobject");
    return "";
  }
  json network = {{"mode", "container"}};
  const auto name = given.value("networkName", json());
  if (name.is_string() && !name.get<std::string>().empty()) network["name"] = name;
  if (const auto labels = given.value("labels", json()); labels.is_object() && !labels.empty())
    network["labels"] = labels;
  const bool docker_says = app.contains("container") && app["container"].is_object() &&
                           app["container"].value("docker", json()).is_object() &&
                           app["container"]["docker"].contains("network");
  if (!docker_says) add_network(app, network, "must not specify both networks and ipAddress", mistakes);
  const auto discovery = given.value("discovery", json());
  const auto ports = discovery.is_object() ? discovery.value("ports", json()) : json();
  if (ports.is_array() && !ports.empty()) {
    if (!app.contains("container") || !app["container"].is_object()) app["container"] = {{"type", "MESOS"}};
    auto& mappings = app["container"]["portMappings"];
    if (!filled(mappings)) {
      mappings = json::array();
      for (const auto& port : ports) {
        if (!port.is_object()) continue;
        json mapping = {{"containerPort", port.value("number", json(0))}};
        for (const auto* field : {"name", "protocol", "labels"})
          if (port.contains(field)) mapping[field] = port[field];
        mappings.push_back(std::move(mapping));
      }
    }
  }
  return name.is_string() ? name.get<std::string>() : "";
}

bool has_own_network(const json& app) {
  const auto networks = app.find("networks");
  if (networks == app.end() || !networks->is_array()) return false;
  return std::any_of(networks->begin(), networks->end(), [](const json& network) {
    return network.is_object() && network.value("mode", json("container")) != "host";
  });
}

void ports(json& app, Mistakes& mistakes) {
  const auto given = take(app, "ports");
  if (given.is_null()) return;
  if (!given.is_array()) {
    mistakes.wrong_type("/ports", "error.expected.jsarray");
    return;
  }
  if (!given.empty() && app.contains("portDefinitions") && filled(app["portDefinitions"])) {
    mistakes.broken_rule("/", "cannot specify both ports and port definitions");
    return;
  }
  if (has_own_network(app) || (app.contains("portDefinitions") && !app["portDefinitions"].is_null())) return;
  auto definitions = json::array();
  std::set<json> seen;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_number()) {
      mistakes.wrong_type("/ports(" + std::to_string(i) + ")", "error.expected.jsnumber");
      continue;
    }
    if (given[i] != 0 && !seen.insert(given[i]).second) {
      mistakes.broken_rule("/ports", "ports must be unique");
      continue;
    }
    definitions.push_back({{"port", given[i]}});
  }
  app["portDefinitions"] = std::move(definitions);
}

}  // namespace

json modern(json app, Mistakes& mistakes) {
  if (!app.is_object()) return app;
  for (const auto* name : kOnlyInAnswers) app.erase(name);
  uris(app, mistakes);
  const auto network = ip_address(app, mistakes);
  docker(app, network, mistakes);
  ports(app, mistakes);
  return app;
}

}  // namespace drover::marathon
