#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/fake_tree.h"
#include "cdi/apply.h"
#include "cdi/decode.h"
#include "cdi/names.h"
#include "cdi/registry.h"
#include "cdi/write.h"

namespace drover::cdi {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSmall = R"({"cdiVersion": "0.5.0", "kind": "vendor.com/net",
  "devices": [{"name": "a", "containerEdits": {"env": ["A=1"]}}, {"name": "b", "containerEdits": {"env": ["B=1"]}}],
  "containerEdits": {"env": ["COMMON=1"]}})";

Specification everything() {
  Specification made;
  made.kind = "vendor.com/class.two";
  made.annotations = {{"made", "by"}};
  Edits edits;
  edits.environment = {"A=b", "C=", "ODD=\x7f \u0085\u2028\ufeff \u00e4 \U0001f600 \t\"\\"};
  edits.device_nodes = {{"/dev/x", "/host/x", "c", 10, 0, 0666U, "rw", 0U, 5U}, {"/dev/y"}};
  edits.net_devices = {{"eth1", "net0"}};
  edits.mounts = {{"/lib/x", "/usr/lib/x", "none", {"ro", "rbind"}}, {"/lib/y", "/usr/lib/y"}};
  edits.hooks = {{"createContainer", "/bin/hook", {"hook", "--a: b", "#c"}, {"P=/q"}, 5}};
  edits.intel_rdt = IntelRdt{"group", "L3:0=f", "MB:0=10", false, false, {"L2:0=3"}, true};
  edits.additional_gids = {44, 4294967295U};
  made.edits = edits;
  made.devices = {{"0", {{"k", "v"}}, edits}, {"GPU-1:2", {}, edits}};
  made.version = required_version(made);
  return made;
}

std::string refusal(const std::string& text) {
  const auto read = decode_specification(text, "It");
  EXPECT_FALSE(read) << text;
  return read ? "" : to_string(read.error());
}

TEST(CdiNames, FollowTheGrammar) {
  EXPECT_EQ(parse_device_name("nvidia.com/gpu=0").value(), (DeviceName{"nvidia.com/gpu", "0"}));
  EXPECT_EQ(to_string(parse_device_name("a-b_c.d/x.y=GPU-1:0.2").value()), "a-b_c.d/x.y=GPU-1:0.2");
  for (const char* wrong :
       {"", "gpu", "vendor.com/gpu", "/gpu=0", "vendor.com/=0", "vendor.com/gpu=", "1v.com/gpu=0",
        "v.com/1gpu=0", "v.com/gpu=-a", "v.com/gpu=a-", "v.com/g/pu=0", "v.com/gpu=a b", "v/c=a=b"})
    EXPECT_FALSE(parse_device_name(wrong)) << wrong;
  EXPECT_FALSE(parse_device_name("v.com/gpu=" + std::string(300, 'a')));
  EXPECT_TRUE(looks_like_device_name("v.com/gpu=0"));
  EXPECT_FALSE(looks_like_device_name("/dev/x=0/y=1"));
  EXPECT_FALSE(looks_like_device_name("/dev/fuse"));
}

TEST(CdiVersions, AreTheLowestThatSuffices) {
  Specification made{"", "v.com/c", {}, {{"a", {}, {}}}, {}};
  const auto required_after = [&](auto change) {
    auto copy = made;
    change(copy);
    return required_version(copy);
  };
  EXPECT_EQ(required_version(made), "0.3.0");
  EXPECT_EQ(required_after([](auto& s) { s.edits.mounts = {{"/a", "/b", "none"}}; }), "0.4.0");
  EXPECT_EQ(required_after([](auto& s) { s.devices[0].name = "0"; }), "0.5.0");
  EXPECT_EQ(required_after([](auto& s) { s.devices[0].edits.device_nodes = {{"/dev/a", "/dev/b"}}; }),
            "0.5.0");
  EXPECT_EQ(required_after([](auto& s) { s.kind = "v.com/c.d"; }), "0.6.0");
  EXPECT_EQ(required_after([](auto& s) { s.devices[0].annotations = {{"a", "b"}}; }), "0.6.0");
  EXPECT_EQ(required_after([](auto& s) { s.edits.additional_gids = {1}; }), "0.7.0");
  EXPECT_EQ(required_after([](auto& s) { s.edits.intel_rdt = IntelRdt{}; }), "0.7.0");
  EXPECT_EQ(required_after([](auto& s) { s.edits.net_devices = {{"a", "b"}}; }), "1.1.0");
  EXPECT_TRUE(is_known_version("v0.5.0") && is_known_version("1.0.0"));
  EXPECT_FALSE(is_known_version("0.9.0") || is_known_version("2.0.0") || is_known_version(""));
}

TEST(CdiSpecification, IsReadAsItWasWritten) {
  for (const auto format : {Format::kJson, Format::kYaml}) {
    const auto text = write_specification(everything(), format);
    const auto read = decode_specification(text, "It");
    ASSERT_TRUE(read) << to_string(read.error()) << "\n" << text;
    EXPECT_EQ(*read, everything());
  }
}

TEST(CdiSpecification, TellsAllMistakesWithTheirPlaces) {
  const auto said = refusal(R"({"cdiVersion": "0.3.0", "kind": "nobody", "unknown": 1, "devices": [
    {"name": "-", "containerEdits": {"deviceNodes": [{"path": "dev/x", "type": "z", "permissions": "q", "major": -1}],
     "mounts": [{"hostPath": "/a"}], "hooks": [{"hookName": "never", "path": "x", "timeout": 0}], "env": ["=x", "y"]}},
    {"name": "a", "containerEdits": {}}, {"name": "a", "containerEdits": {"env": ["A=1"]}}]})");
  for (const char* place :
       {"/kind", "/unknown", "/devices/0/name", "/devices/0/containerEdits/deviceNodes/0/path",
        "deviceNodes/0/type", "deviceNodes/0/permissions", "deviceNodes/0/major", "mounts/0/containerPath",
        "hooks/0/hookName", "hooks/0/path", "hooks/0/timeout", "containerEdits/env",
        "/devices/1/containerEdits"})
    EXPECT_THAT(said, HasSubstr(place));
  EXPECT_THAT(said, HasSubstr("'a' stands here twice"));
}

TEST(CdiSpecification, RefusesVersionsThatAreTooLowOrUnknown) {
  std::string text = kSmall;
  EXPECT_TRUE(decode_specification(text, "It"));
  text.replace(text.find("0.5.0"), 5, "9.9.9");
  EXPECT_THAT(refusal(text), HasSubstr("9.9.9"));
  auto low = everything();
  low.version = "0.5.0";
  EXPECT_THAT(refusal(write_specification(low)), HasSubstr("needs version 1.1.0"));
  EXPECT_THAT(refusal(R"({"cdiVersion": "0.5.0", "kind": "v.com/c", "devices": []})"),
              HasSubstr("no device"));
  refusal("[]");
  refusal("");
  refusal("a: [");
  refusal(std::string(kMaxSpecificationBytes + 1, ' '));
}

json a_config() {
  return json::parse(R"({"process": {"user": {"uid": 1000, "gid": 1000}, "env": ["PATH=/bin", "A=old"]},
    "linux": {"devices": [], "resources": {"devices": [{"allow": false, "access": "rwm"}]}},
    "mounts": [{"destination": "/lib/x", "source": "/old"}]})");
}

TEST(CdiApply, EditsTheConfiguration) {
  auto edits = everything().edits;
  auto config = a_config();
  EXPECT_EQ(apply_edits(edits, config).error().kind, ErrorKind::kUnsupported);
  edits.net_devices.clear();
  edits.device_nodes.pop_back();
  edits.mounts = {{"/new", "/lib/x", "", {"rbind", "ro"}}};
  config = a_config();
  ASSERT_TRUE(apply_edits(edits, config));
  EXPECT_EQ(config["process"]["env"], json({"PATH=/bin", "A=b", "C=", edits.environment[2]}));
  EXPECT_EQ(config["process"]["user"]["additionalGids"], json({44, 4294967295U}));
  EXPECT_EQ(
      config["linux"]["devices"],
      json::parse(
          R"([{"path": "/dev/x", "type": "c", "major": 10, "minor": 0, "fileMode": 438, "uid": 0, "gid": 5}])"));
  EXPECT_EQ(config["linux"]["resources"]["devices"][1],
            json::parse(R"({"allow": true, "type": "c", "major": 10, "minor": 0, "access": "rw"})"));
  EXPECT_EQ(
      config["mounts"],
      json::parse(
          R"([{"destination": "/lib/x", "source": "/new", "type": "bind", "options": ["rbind", "ro"]}])"));
  EXPECT_EQ(
      config["hooks"]["createContainer"],
      json::parse(
          R"([{"path": "/bin/hook", "args": ["hook", "--a: b", "#c"], "env": ["P=/q"], "timeout": 5}])"));
  EXPECT_EQ(config["linux"]["intelRdt"]["closID"], "group");
}

TEST(CdiApply, AHookNeverGetsTheContainersEnvironment) {
  Edits edits;
  edits.hooks = {{"createContainer", "/bin/hook"}};
  auto config = a_config();
  ASSERT_TRUE(apply_edits(edits, config));
  EXPECT_THAT(config["hooks"]["createContainer"][0]["env"].get<std::vector<std::string>>(),
              ElementsAre(::testing::StartsWith("PATH=/usr/")));
}

TEST(CdiApply, PermissionsAreAllNoneOrThoseThatAreSaid) {
  for (const auto& [said, access] : {std::pair("", "rwm"), {"none", ""}, {"r", "r"}}) {
    Edits edits;
    edits.device_nodes = {{"/dev/x", "", "b", 8, 1, std::nullopt, said}};
    auto config = a_config();
    ASSERT_TRUE(apply_edits(edits, config));
    EXPECT_EQ(config["linux"]["resources"]["devices"][1]["access"], access);
    EXPECT_EQ(config["linux"]["devices"][0]["uid"], 1000);
  }
}

TEST(CdiApply, NodesAreCompletedFromTheHost) {
  Edits edits;
  edits.device_nodes = {{"/dev/other", "/dev/null"}};
  ASSERT_TRUE(complete_device_nodes(edits));
  EXPECT_EQ(edits.device_nodes[0].type, "c");
  EXPECT_EQ(edits.device_nodes[0].major, 1);
  EXPECT_EQ(edits.device_nodes[0].minor, 3);
  edits.device_nodes = {{"/dev/there-is-none"}};
  EXPECT_EQ(complete_device_nodes(edits).error().kind, ErrorKind::kNotFound);
  edits.device_nodes = {{"/etc"}};
  EXPECT_FALSE(complete_device_nodes(edits));
}

TEST(CdiRegistry, IsReadAgainWhenAFileHasChanged) {
  FakeTree tree;
  tree.file("etc/a.json", kSmall);
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(tree / "etc/a.json", hour_ago);
  KeptRegistry kept({tree / "etc", tree / "none"}, std::chrono::milliseconds(0));
  const auto first = kept.registry();
  EXPECT_EQ(kept.registry(), first) << "nothing has changed";
  for (const auto* value : {"A=2", "A=3", "A=4"}) {  // in one moment, where it is, and of the same size
    tree.file("etc/a.json", std::regex_replace(kSmall, std::regex("A=1"), value));
    EXPECT_THAT(kept.edits_of({{"vendor.com/net", "a"}}).value().environment, ::testing::Contains(value));
  }
  std::filesystem::remove(tree / "etc/a.json");
  EXPECT_FALSE(kept.edits_of({{"vendor.com/net", "a"}}));
}

TEST(CdiRegistry, WhatIsMissingIsLookedForAtOnce) {
  FakeTree tree;
  tree.file("etc/a.json", kSmall);
  KeptRegistry kept({tree / "etc"}, std::chrono::hours(1));
  EXPECT_TRUE(kept.edits_of({{"vendor.com/net", "a"}}));
  tree.file("etc/other.json", std::regex_replace(kSmall, std::regex("vendor"), "other"));
  EXPECT_EQ(kept.registry()->devices().size(), 2U) << "the last look was not long ago";
  EXPECT_TRUE(kept.edits_of({{"other.com/net", "a"}}));
}

TEST(CdiRegistry, TheLaterFolderWinsAndConflictsAreTold) {
  FakeTree tree;
  std::string other = kSmall;
  other.replace(other.find("A=1"), 3, "A=2");
  tree.file("etc/a.json", kSmall)
      .file("etc/ignored.txt", "x")
      .file("etc/.hidden.json", "x")
      .file("etc/bad.yaml", "a: [");
  tree.file("run/b.json", other);
  auto registry = Registry::read({tree / "etc", tree / "run", tree / "none"});
  EXPECT_EQ(registry.devices().size(), 2U);
  ASSERT_EQ(registry.problems().size(), 1U);
  EXPECT_THAT(registry.problems()[0].message, HasSubstr("bad.yaml"));
  const auto a = registry.edits_of({{"vendor.com/net", "a"}, {"vendor.com/net", "a"}});
  EXPECT_THAT(a.value().environment, ElementsAre("COMMON=1", "A=2"));
  const auto both = registry.edits_of({{"vendor.com/net", "b"}, {"vendor.com/net", "a"}});
  EXPECT_THAT(both.value().environment, ElementsAre("COMMON=1", "B=1", "A=2"));
  const auto none = registry.edits_of({{"vendor.com/net", "c"}});
  EXPECT_EQ(none.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(none.error().hint, HasSubstr("vendor.com/net=a"));

  tree.file("run/c.json", kSmall);
  registry = Registry::read({tree / "etc", tree / "run"});
  EXPECT_EQ(registry.edits_of({{"vendor.com/net", "a"}}).error().kind, ErrorKind::kConflict);
}

}  // namespace
}  // namespace drover::cdi
