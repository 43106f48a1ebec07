#include "workload/service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::workload {
namespace {

using namespace std::chrono_literals;

Service full() {
  Service service;
  service.id = "/shop/web";
  service.task.name = "web";
  service.task.command = {"serve"};
  service.task.image = "example:1";
  service.task.owner_name = "alice";
  service.task.fetch = {{"https://example.org/a.tar", false, true, true, "bin/a"}, {.uri = "/etc/hostname"}};
  service.task.volumes = {{"/data", "/srv/data", true}};
  service.task.network = {NetworkMode::kBridge, {{"http", PortProtocol::kBoth, 80, 0, {{"vip", "1"}}}, {}}};
  service.task.origin = {OriginKind::kService, "/shop/web", "web.1", "now"};
  service.instances = 3;
  service.health_checks = {{}, {.kind = CheckKind::kCommand, .command = {"true"}, .interval = 500ms}};
  service.readiness = ReadinessCheck{.https = true, .ready_statuses = {200, 302}};
  service.minimum_health = 0.5;
  service.backoff = {2s, 2.0, 60s};
  service.constraints = {{"hostname", ConstraintKind::kUnique, ""}, {"rack", ConstraintKind::kMaxPer, "2"}};
  service.dependencies = {"/shop/db"};
  service.oldest_first = true;
  service.version = TimePoint(1234567890123ms);
  service.definition = R"({"id":"/shop/web"})";
  return service;
}

TEST(Service, IsStoredWhole) {
  for (const auto& service : {full(), Service()}) {
    const auto decoded = decode_service(nlohmann::json::parse(encode(service).dump()));
    ASSERT_TRUE(decoded) << to_string(decoded.error());
    EXPECT_EQ(*decoded, service);
  }
}

TEST(Service, DamagedInTheJournalIsSaid) {
  auto stored = encode(full());
  stored["health_checks"] = "none";
  EXPECT_EQ(decode_service(stored).error().kind, ErrorKind::kCorrupt);
  stored = encode(full());
  stored["task"]["fetch"] = 5;
  EXPECT_EQ(decode_service(stored).error().kind, ErrorKind::kCorrupt);
}

TEST(Service, ScalingChangesNoConfiguration) {
  const auto service = full();
  auto other = service;
  other.instances = 7;
  other.version += 5s;
  other.last_scaling_at = other.version;
  other.dependencies = {"/other"};
  EXPECT_TRUE(same_configuration(service, other)) << "those of its groups";
  other.task.environment.edit()["A"] = "1";
  EXPECT_FALSE(same_configuration(service, other));
}

}  // namespace
}  // namespace drover::workload
