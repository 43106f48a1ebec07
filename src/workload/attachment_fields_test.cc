#include "workload/attachment_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::workload {
namespace {

using nlohmann::json;

Result<TaskRequest> request_of(const char* fields) {
  auto body = json::parse(fields);
  body["command"] = {"a"};
  return decode_task_request(body);
}

std::string path_of_mistake(const char* fields) {
  const auto request = request_of(fields);
  return request ? "" : request.error().path;
}

TEST(Attachments, AreReadFromARequest) {
  const auto request = request_of(R"({
    "fetch": [{"uri": "https://a/b.tgz", "cache": true, "extract": false, "executable": true, "output_file": "c/d"}],
    "volumes": [{"container_path": "/data", "host_path": "/srv/data", "read_only": true}],
    "network": {"mode": "bridge", "ports": [{"name": "http", "protocol": "both", "container_port": 80}]}})");
  ASSERT_TRUE(request) << to_string(request.error());
  EXPECT_EQ(request->task.fetch, (std::vector<Fetch>{{"https://a/b.tgz", false, true, true, "c/d"}}));
  EXPECT_EQ(request->task.volumes, (std::vector<Volume>{{"/data", "/srv/data", true}}));
  EXPECT_EQ(request->task.network.mode, NetworkMode::kBridge);
  EXPECT_EQ(request->task.network.ports,
            (std::vector<Port>{{.name = "http", .protocol = PortProtocol::kBoth, .container_port = 80}}));
  EXPECT_EQ(decode_task(encode(request->task))->fetch, request->task.fetch);
}

TEST(Attachments, DevicesAreNamesOfCdi) {
  const auto request = request_of(R"({"devices": ["vendor.com/net=eth1", "v.com/c.d=GPU-1:0"]})");
  ASSERT_TRUE(request) << to_string(request.error());
  EXPECT_EQ(request->task.devices, (std::vector<std::string>{"vendor.com/net=eth1", "v.com/c.d=GPU-1:0"}));
  for (const char* wrong : {R"({"devices": ["/dev/fuse"]})", R"({"devices": ["vendor.com/net"]})",
                            R"({"devices": "vendor.com/net=a"})", R"({"devices": [7]})"})
    EXPECT_TRUE(path_of_mistake(wrong).starts_with("/devices")) << wrong;
}

TEST(Attachments, FilesMayBeNamedByTheirUriAlone) {
  const auto request = request_of(R"({"fetch": ["/a", "http://b/c"]})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->task.fetch, (std::vector<Fetch>{{.uri = "/a"}, {.uri = "http://b/c"}}));
  EXPECT_TRUE(request_of(R"({"fetch": []})")->task.fetch.empty());
}

TEST(Attachments, MistakesNameTheirPlace) {
  EXPECT_EQ(path_of_mistake(R"({"fetch": [{"uri": "/a", "output_file": "../b"}]})"), "/fetch/0/output_file");
  EXPECT_EQ(path_of_mistake(R"({"fetch": [{"uri": ""}]})"), "/fetch");
  EXPECT_FALSE(request_of(R"({"fetch": ["/a", 1]})"));
  EXPECT_EQ(path_of_mistake(R"({"volumes": [{"container_path": "a", "host_path": "b"}]})"),
            "/volumes/0/host_path");
  EXPECT_EQ(path_of_mistake(R"({"volumes": [{"container_path": "a/../..", "host_path": "/b"}]})"),
            "/volumes/0/container_path");
  EXPECT_EQ(path_of_mistake(R"({"network": {"mode": "cloud"}})"), "/network/mode");
  EXPECT_EQ(path_of_mistake(R"({"network": {"ports": [{"host_port": 65536}]}})"),
            "/network/ports/0/host_port");
}

}  // namespace
}  // namespace drover::workload
