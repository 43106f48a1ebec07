#pragma once

// The parts that an app is read by. For the `.cc` files of this room.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "marathon/app.h"
#include "marathon/fields.h"

namespace drover::marathon {

inline constexpr int kMaxPort = 65535;

/// Reads one app in today's spelling. Each part reads its fields, writes them into `shown` as Marathon shows
/// them, and sets what they mean.
class AppReader {
 public:
  AppReader(const nlohmann::json& app, const Options& options, std::vector<int> own_ports,
            Mistakes& mistakes);

  /// `id` and `dependency_base` are absolute.
  App read(const std::string& id, const std::string& dependency_base);

 private:
  // app.cc
  void names(const std::string& id, const std::string& dependency_base);
  void command();
  void resources();
  void environment();
  void fetch();
  void timing();
  void upgrades();
  void kept_as_they_are();
  // container.cc
  void container();
  void docker(Fields& container, nlohmann::json& shown);
  void docker_parameters(Fields& docker);
  void volumes(Fields& container, nlohmann::json& shown);
  void networks();
  void port_definitions();
  void port_mappings(Fields* container);
  workload::Port port(Fields& fields, nlohmann::json& shown);
  void check_port_names();
  void assign_service_ports(nlohmann::json& ports, const char* name);
  // checks.cc
  void health_checks();
  workload::HealthCheck health_check(Fields& fields, nlohmann::json& shown);
  void health_check_port(Fields& fields, nlohmann::json& shown, workload::HealthCheck& check);
  void readiness_checks();
  void ready_statuses(Fields& fields, workload::ReadinessCheck& check);
  void constraints();
  void constraint(const std::string& path, const std::vector<std::string>& words);

  Fields fields_;
  const Options& options_;
  std::vector<int> own_ports_;  ///< service ports that the app had before
  nlohmann::json shown_;
  App app_;
  bool has_image_ = false;
  bool docker_type_ = false;
};

}  // namespace drover::marathon
