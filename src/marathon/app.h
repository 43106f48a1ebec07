#pragma once

// An app as Marathon's wire has it, read into a service, and shown again. The definition that a service keeps
// is the app as Marathon 1.11 shows it: today's spelling, every default filled in, what Drover does not know
// kept as it was given. Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "marathon/refusal.h"
#include "workload/service.h"

namespace drover {
class JsonWriter;
}

namespace drover::marathon {

/// Service ports are numbers for load balancers: no two apps are given the same one unasked.
inline constexpr int kFirstServicePort = 10'000;
inline constexpr int kLastServicePort = 20'000;
inline constexpr int kMostInstances = 10'000;

struct Options {
  /// As Marathon itself: GPUs only for containers of type MESOS.
  bool strict = false;
  /// Taken by any app.
  std::set<int> service_ports;
};

struct App {
  workload::Service service;  ///< its version, its times and whom it runs as are set by who defines it
  std::optional<std::string> user;
};

/// A whole app. Its id is seen from the root, its dependencies from its own id. `own_ports` are the service
/// ports that it had before, for those that it leaves open.
Decoded<App> decode_app(const nlohmann::json& body, const Options& options, std::vector<int> own_ports = {});
/// A whole app of a group: its id and its dependencies are seen from the group.
Decoded<App> decode_app_of(std::string_view group, const nlohmann::json& body, const Options& options,
                           std::vector<int> own_ports = {});

/// `existing` with what `update` says in place of what it was. The id may be left out, and may not be
/// another.
Decoded<App> update_app(const workload::Service& existing, const nlohmann::json& update,
                        const Options& options);

/// The user that the definition of a service names, or none.
std::optional<std::string> user_of(const workload::Service& service);

/// What the definition of a service itself depends on, without what its groups do: absolute paths.
std::vector<std::string> own_dependencies(const workload::Service& service);

/// The app as JSON text: the definition with instances, version and versionInfo. Parses nothing.
std::string show(const workload::Service& service);
/// The same into an object that has begun, to be continued.
void write_fields(JsonWriter& writer, const workload::Service& service);

/// The service ports of an app, in the order of its ports.
std::vector<int> service_ports(const workload::Service& service);

}  // namespace drover::marathon
