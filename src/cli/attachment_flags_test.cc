#include "cli/attachment_flags.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

using nlohmann::json;

json request_of(const AttachmentFlags& flags) {
  json body = json::object();
  const auto done = add_attachments(flags, body);
  EXPECT_TRUE(done) << to_string(done.error());
  return body;
}

TEST(AttachmentFlags, ComeAsTheApiHasThem) {
  EXPECT_EQ(request_of({}), json::object());
  EXPECT_EQ(request_of({.fetch = {"https://x/a.tgz", "/srv/b", "c"}}),
            json({{"fetch", {"https://x/a.tgz", "/srv/b", std::filesystem::absolute("c").string()}}}));
  EXPECT_EQ(request_of({.devices = {"vendor.com/net=eth1"}})["devices"], json({"vendor.com/net=eth1"}));
  EXPECT_EQ(request_of({.volumes = {"/srv/data:/data:ro", "/tmp/../out:out"}})["volumes"],
            json::parse(R"([{"host_path": "/srv/data", "container_path": "/data", "read_only": true},
                            {"host_path": "/out", "container_path": "out", "read_only": false}])"));
  EXPECT_EQ(request_of({.network = "host"}), json({{"network", {{"mode", "host"}}}}));
  EXPECT_EQ(request_of({.published = {"80", "31080:8080", "53/udp"}})["network"],
            json::parse(R"({"mode": "bridge", "ports": [
                {"protocol": "tcp", "container_port": 80},
                {"protocol": "tcp", "container_port": 8080, "host_port": 31080},
                {"protocol": "udp", "container_port": 53}]})"));
}

TEST(AttachmentFlags, MistakesNameTheFlag) {
  for (const auto* text : {"", "/data", ":/data", "/data:", "/data:/x:rx", "/data::ro"}) {
    json body;
    const auto done = add_attachments({.volumes = {text}}, body);
    ASSERT_FALSE(done) << text;
    EXPECT_TRUE(done.error().message.starts_with("--volume: ")) << done.error().message;
  }
  for (const auto* text : {"", "0", "65536", "http", "1:", ":1", "0:1", "-1", "80:90:100"}) {
    json body;
    const auto done = add_attachments({.published = {text}}, body);
    ASSERT_FALSE(done) << text;
    EXPECT_TRUE(done.error().message.starts_with("--publish: ")) << done.error().message;
  }
}

}  // namespace
}  // namespace drover::cli
