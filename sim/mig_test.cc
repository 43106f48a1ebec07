#include "sim/mig.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "sim/testing/shipped.h"

namespace drover::sim {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const MigProfile& named(const Model& model, const std::string& name) {
  return *std::ranges::find(model.mig, name, &MigProfile::name);
}

class MigTest : public ::testing::Test {
 protected:
  nvmlReturn_t add(const std::string& profile, std::optional<unsigned int> start = {}) {
    unsigned int id = 0;
    return add_instance(model, gpu, named(model, profile), start, id);
  }
  std::vector<unsigned int> free_for(const std::string& profile) const {
    return free_starts(model, gpu, named(model, profile));
  }

  const Profile machine = shipped("dgx-a100");
  const Model model = machine.gpus[0].model;
  MigGpu gpu{true, {}};
};

/// As NVIDIA's user guide has them for cards with 40 GB.
TEST_F(MigTest, PlacementsAreThoseOfTheCard) {
  const std::map<std::string, std::pair<unsigned int, std::vector<unsigned int>>> known{
      {"1g.5gb", {1, {0, 1, 2, 3, 4, 5, 6}}},
      {"1g.5gb+me", {1, {0, 1, 2, 3, 4, 5, 6}}},
      {"1g.10gb", {2, {0, 2, 4, 6}}},
      {"2g.10gb", {2, {0, 2, 4}}},
      {"3g.20gb", {4, {0, 4}}},
      {"4g.20gb", {4, {0}}},
      {"7g.40gb", {8, {0}}}};
  ASSERT_EQ(model.mig.size(), known.size());
  for (const auto& profile : model.mig) {
    EXPECT_EQ(memory_slices(model, profile), known.at(profile.name).first) << profile.name;
    EXPECT_EQ(possible_starts(model, profile), known.at(profile.name).second) << profile.name;
  }
}

TEST_F(MigTest, InstancesNeverOverlap) {
  EXPECT_EQ(add("3g.20gb", 4), NVML_SUCCESS);
  EXPECT_EQ(add("3g.20gb", 4), NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(add("7g.40gb"), NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_THAT(free_for("1g.5gb"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(add("1g.5gb", 1), NVML_SUCCESS);
  EXPECT_THAT(free_for("2g.10gb"), ElementsAre(2));
  EXPECT_THAT(free_for("4g.20gb"), IsEmpty());
}

TEST_F(MigTest, OneInstanceHasTheMediaEngines) {
  EXPECT_EQ(add("1g.5gb+me"), NVML_SUCCESS);
  EXPECT_EQ(add("1g.5gb+me"), NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(add("1g.5gb"), NVML_SUCCESS);
}

TEST_F(MigTest, WithoutTheModeThereAreNone) {
  gpu.enabled = false;
  EXPECT_EQ(add("1g.5gb"), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(MigTest, ComputeInstancesShareTheSlicesOfTheirGpuInstance) {
  ASSERT_EQ(add("3g.20gb"), NVML_SUCCESS);
  auto instance = gpu.instances.front();
  unsigned int id = 9;
  EXPECT_EQ(add_compute(instance, 2, id), NVML_SUCCESS);
  EXPECT_EQ(id, 0U);
  EXPECT_EQ(add_compute(instance, 2, id), NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(add_compute(instance, 1, id), NVML_SUCCESS);
  EXPECT_EQ(id, 1U);
  EXPECT_EQ(mig_name(instance, instance.compute[1]), "MIG 1c.3g.20gb");
  EXPECT_NE(mig_uuid(machine.gpus[0], instance, instance.compute[0]),
            mig_uuid(machine.gpus[0], instance, instance.compute[1]));
}

TEST_F(MigTest, WhatIsWrittenIsReadAgain) {
  MigState state(machine.gpus.size());
  state[2].enabled = true;
  unsigned int id = 0;
  ASSERT_EQ(add_instance(model, state[2], named(model, "3g.20gb"), 4, id), NVML_SUCCESS);
  ASSERT_EQ(add_compute(state[2].instances[0], 3, id), NVML_SUCCESS);
  const auto written = encode_mig_state(state);
  const auto read = decode_mig_state(written, machine, "it");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(encode_mig_state(*read), written);
}

TEST_F(MigTest, MistakesOfTheFileAreNamed) {
  const auto said = [&](const std::string& text) {
    const auto state = decode_mig_state(*parse_yaml(text, "it"), machine, "it");
    return state ? "" : to_string(state.error());
  };
  EXPECT_EQ(said("{1: {enabled: true, instances: [{id: 3, profile: 1g.5gb, start: 6}]}}"), "");
  EXPECT_THAT(said("{9: {}}"), HasSubstr("no such GPU"));
  EXPECT_THAT(said("{0: {enabled: true, instances: [{id: 1, profile: 5g.1gb, start: 0}]}}"),
              HasSubstr("no such MIG profile"));
  EXPECT_THAT(said("{0: {enabled: true, instances: [{id: 1, profile: 3g.20gb, start: 1}]}}"),
              HasSubstr("no room"));
  EXPECT_THAT(said("{0: {enabled: true, instances: [{id: 1, profile: 3g.20gb, start: 0},"
                   " {id: 1, profile: 3g.20gb, start: 4}]}}"),
              HasSubstr("another GPU instance"));
  EXPECT_THAT(said("{0: {instances: [{id: 1, profile: 3g.20gb, start: 0}]}}"), HasSubstr("enabled"));
  EXPECT_THAT(said("{0: {enabled: true, instances: [{id: 1, profile: 3g.20gb, start: 0, compute: ["
                   "{id: 0, start: 0, slices: 2}, {id: 1, start: 1, slices: 1}]}]}}"),
              HasSubstr("has no room"));
}

TEST_F(MigTest, TwoProcessesChangeOneFileAndABrokenOneIsLeftAlone) {
  const auto folder = fs::path(::testing::TempDir()) / ("mig_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto file = folder / "mig.yaml";
  MigFile one(file, machine, false);
  MigFile other(file, machine, false);
  EXPECT_FALSE((*one.current())[0].enabled);
  const auto enable = [](std::size_t gpu) {
    return [gpu](MigState& state) {
      state[gpu].enabled = true;
      return NVML_SUCCESS;
    };
  };
  EXPECT_EQ(one.change(enable(0)), NVML_SUCCESS);
  EXPECT_EQ(other.change(enable(1)), NVML_SUCCESS);
  EXPECT_TRUE((*one.current())[0].enabled && (*one.current())[1].enabled);
  EXPECT_EQ(one.change([](MigState& state) {
    state[0].enabled = false;
    return NVML_ERROR_IN_USE;
  }),
            NVML_ERROR_IN_USE);
  EXPECT_TRUE((*other.current())[0].enabled);
  std::ofstream(file) << "{no: gpu}";
  EXPECT_TRUE((*one.current())[1].enabled) << "the last good state";
  EXPECT_EQ(one.change(enable(2)), NVML_ERROR_UNKNOWN);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace drover::sim
