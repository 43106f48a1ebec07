#include "kube/plugin/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

PluginConfig decoded(const Json& document) {
  const auto loaded = decode_plugin_config(document, "config");
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  return loaded ? loaded->config : PluginConfig{};
}

std::string refused(const Json& document) {
  const auto loaded = decode_plugin_config(document, "config");
  EXPECT_FALSE(loaded);
  return loaded ? "" : loaded.error().message;
}

TEST(PluginConfig, SaysNothingAndGetsTheDefaults) {
  EXPECT_EQ(decoded({{"version", "v1"}}), PluginConfig{});
}

TEST(PluginConfig, ReadsWhatNvidiasPluginReads) {
  const auto config = decoded(Json::parse(R"({
    "version": "v1",
    "flags": {"migStrategy": "mixed", "plugin": {"passDeviceSpecs": true, "deviceListStrategy": ["envvar", "cdi-cri"],
      "deviceIDStrategy": "index", "sharedDevicesAllocationPolicy": "packed"}},
    "sharing": {"timeSlicing": {"renameByDefault": true, "failRequestsGreaterThanOne": true,
      "resources": [{"name": "nvidia.com/gpu", "replicas": 10}]}}})"));
  EXPECT_EQ(config.pass_device_specs, true);
  EXPECT_THAT(config.strategies, ElementsAre(ListStrategy::kEnvironment, ListStrategy::kCdiCri));
  EXPECT_TRUE(config.ids_are_indices);
  EXPECT_EQ(config.shared_policy, SharedPolicy::kPacked);
  EXPECT_TRUE(config.refuse_several_shares);
  EXPECT_THAT(config.shares, ElementsAre(ShareRule{"nvidia.com/gpu", 10, "nvidia.com/gpu.shared", {}}));
}

TEST(PluginConfig, NamesModelsAndSharesSomeOfTheGpus) {
  const auto config = decoded(Json::parse(R"({"version": "v1",
    "resources": {"gpus": [{"pattern": "*", "name": "gpu"}, {"pattern": "*A100*", "name": "lab.example/a100"}]},
    "sharing": {"timeSlicing": {"resources": [
      {"name": "lab.example/a100", "rename": "lab.example/a100-part", "replicas": 2, "devices": [0, "GPU-1"]}]}}})"));
  EXPECT_THAT(config.resources,
              ElementsAre(ResourceRule{"nvidia.com/gpu", "*"}, ResourceRule{"lab.example/a100", "*A100*"}));
  const auto signed_number =
      decoded({{"version", "v1"},
               {"sharing",
                {{"timeSlicing",
                  {{"resources", {{{"name", "gpu"}, {"replicas", 2}, {"devices", {std::int64_t{1}}}}}}}}}}});
  EXPECT_THAT(signed_number.shares.at(0).devices, ElementsAre("1"));
  EXPECT_THAT(config.shares,
              ElementsAre(ShareRule{"lab.example/a100", 2, "lab.example/a100-part", {"0", "GPU-1"}}));
}

TEST(PluginConfig, SharesByMps) {
  const auto config = decoded(Json::parse(R"({"version": "v1", "sharing": {"mps": {"renameByDefault": true,
    "resources": [{"name": "nvidia.com/gpu", "replicas": 4, "devices": ["GPU-1"]}]}}})"));
  EXPECT_TRUE(config.refuse_several_shares);
  EXPECT_THAT(config.shares, ElementsAre(ShareRule{
                                 "nvidia.com/gpu", 4, "nvidia.com/gpu.shared", {"GPU-1"}, ShareWay::kMps}));
  EXPECT_THAT(refused(Json::parse(R"({"version": "v1", "flags": {"migStrategy": "mixed"}, "sharing": {"mps":
    {"failRequestsGreaterThanOne": false, "resources": []}}})")),
              ::testing::AllOf(HasSubstr("/sharing/mps/failRequestsGreaterThanOne"),
                               HasSubstr("/sharing/mps/resources")));
}

TEST(PluginConfig, SharesWithTheGuard) {
  const auto config = decoded(Json::parse(R"({"version": "v1", "sharing": {"drover": {"renameByDefault": true,
    "resources": [{"name": "nvidia.com/gpu", "replicas": 4}, {"name": "gpu", "memory": "8GiB", "compute": 20}]}}})"));
  EXPECT_TRUE(config.refuse_several_shares);
  EXPECT_TRUE(config.shares_by(ShareWay::kGuard));
  EXPECT_FALSE(config.shares_by(ShareWay::kMps));
  EXPECT_THAT(
      config.shares,
      ElementsAre(
          ShareRule{"nvidia.com/gpu", 4, "nvidia.com/gpu.shared", {}, ShareWay::kGuard},
          ShareRule{"nvidia.com/gpu", 0, "nvidia.com/gpu.shared", {}, ShareWay::kGuard, 8ULL << 30, 20}));
}

TEST(PluginConfig, TakesMemoryAsKubernetesWritesIt) {
  const std::map<std::string, std::uint64_t> amounts = {
      {"8Gi", 8ULL << 30}, {"8GiB", 8ULL << 30}, {"8G", 8'000'000'000}, {"2048Mi", 2ULL << 30}};
  for (const auto& [text, bytes] : amounts) {
    const auto config = decoded({{"version", "v1"},
                                 {"sharing",
                                  {{"drover",
                                    {{"renameByDefault", true},
                                     {"resources", Json::array({{{"name", "gpu"}, {"memory", text}}})}}}}}});
    EXPECT_EQ(config.shares.at(0).memory, bytes) << text;
  }
}

TEST(PluginConfig, TellsEachMistakeOfTheGuardsWhereItIs) {
  const auto said = [](const std::string& resource) {
    const auto loaded = decode_plugin_config(
        Json::parse(R"({"version": "v1", "sharing": {"drover": {"resources": [{"name": "gpu", )" + resource +
                    "}]}}}"),
        "config");
    return loaded ? "" : to_string(loaded.error());
  };
  const std::string place = "/sharing/drover/resources/0/";
  EXPECT_THAT(said(R"("compute": 20)"), HasSubstr(place + "memory: config: either memory or replicas has"));
  EXPECT_THAT(said(R"("replicas": 2, "memory": "8GiB")"),
              HasSubstr(place + "memory: config: either memory or replicas"));
  EXPECT_THAT(said(R"("memory": "8 GPUs")"), HasSubstr(place + "memory: config: '8 GPUs' is not a size"));
  EXPECT_THAT(said(R"("memory": 8)"), HasSubstr(place + "memory: config: expected a string"));
  EXPECT_THAT(said(R"("memory": "1023MiB")"), HasSubstr(place + "memory: config: nothing holds programs"));
  EXPECT_THAT(said(R"("replicas": 1)"), HasSubstr(place + "replicas: config: expected"));
  EXPECT_THAT(said(R"("replicas": 4, "compute": 26)"),
              HasSubstr(place + "compute: config: 4 replicas with 26"));
  EXPECT_THAT(said(R"("replicas": 4, "compute": 0)"), HasSubstr(place + "compute: config: expected"));
  EXPECT_THAT(said(R"("replicas": 4, "cores": 2)"), HasSubstr(place + "cores: config: unknown"));
  const auto around = refused(Json::parse(R"({"version": "v1", "flags": {"migStrategy": "mixed", "plugin":
    {"deviceListStrategy": ["cdi-cri", "envvar"]}}, "sharing": {"timeSlicing": {"resources": []}, "drover":
    {"failRequestsGreaterThanOne": false, "resources": []}}})"));
  for (const auto* part :
       {"/sharing/drover: cannot stand beside", "/sharing/drover/failRequestsGreaterThanOne",
        "with migStrategy", "deviceListStrategy cdi-cri or cdi-annotations alone"})
    EXPECT_THAT(around, HasSubstr(part));
}

TEST(PluginConfig, TellsWhatHasNoEffect) {
  const auto loaded = decode_plugin_config(
      {{"version", "v1"}, {"flags", {{"mofedEnabled", true}, {"plugin", {{"nvidiaCTKPath", "/x"}}}}}},
      "config");
  ASSERT_TRUE(loaded);
  EXPECT_THAT(loaded->ignored, ElementsAre(HasSubstr("/flags/mofedEnabled"), HasSubstr("/nvidiaCTKPath")));
}

TEST(PluginConfig, RefusesMistakesAllAtOnce) {
  const auto said = refused(Json::parse(R"({"version": "v2", "flags": {"migStrategy": "some", "plugin":
    {"deviceListStrategy": "cdi", "passDeviceSpec": true}}, "resources": {"gpus": [{"name": "bad name"}]},
    "sharing": {"mps": {"resources": [{"name": "gpu", "replicas": 49}]}, "timeSlicing": {"resources":
    [{"name": "nvidia.com/other", "replicas": 1, "devices": [-1]}]}}})"));
  for (const auto* part :
       {"/version", "/flags/migStrategy", "/flags/plugin/deviceListStrategy", "passDeviceSpec",
        "/resources/gpus/0/name", "/resources/gpus/0/pattern", "/sharing/mps",
        "/sharing/mps/resources/0/replicas", "/sharing/timeSlicing/resources/0/name", "replicas", "devices"})
    EXPECT_THAT(said, HasSubstr(part));
}

TEST(PluginConfig, KnowsNamesOfResources) {
  for (const auto* good : {"nvidia.com/gpu", "lab.example/a100.shared", "a/b"})
    EXPECT_TRUE(is_resource_name(good));
  for (const auto* bad : {"gpu", "/gpu", "nvidia.com/", "nvidia.com/-x", "nvidia.com/a b",
                          "kubernetes.io/gpu", "requests.nvidia.com/gpu", "NVIDIA.com/gpu", "nvidia.com/a/b"})
    EXPECT_FALSE(is_resource_name(bad)) << bad;
  EXPECT_FALSE(is_resource_name("nvidia.com/" + std::string(64, 'a')));
}

TEST(PluginConfig, MatchesModels) {
  for (const auto* good : {"*", "Tesla*", "*V100*", "Tesla V100-SXM2-16GB", "T*l*1*B", "**"})
    EXPECT_TRUE(matches(good, "Tesla V100-SXM2-16GB")) << good;
  for (const auto* bad : {"", "V100", "*V100", "tesla*", "Tesla", "*?"})
    EXPECT_FALSE(matches(bad, "Tesla V100-SXM2-16GB")) << bad;
  EXPECT_TRUE(matches("*", ""));
}

}  // namespace
}  // namespace drover::kube
