#include "gpu/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/process.h"
#include "gpu/discovery.h"

namespace drover::gpu {
namespace {

using testing::StartsWith;

TEST(TopologyTest, ShowsLinksAndAffinity) {
  Inventory inventory;
  inventory.devices.resize(3);
  for (int i = 0; i < 3; ++i) inventory.devices[static_cast<std::size_t>(i)].index = i;
  inventory.devices[0].cpus = {0, 1, 2, 8};
  inventory.devices[0].numa_node = 0;
  const Link self{0, PcieLevel::kSameDevice};
  const Link nvlink{12, PcieLevel::kAcross};
  const Link board{0, PcieLevel::kSameBoard};
  const Link unknown;
  inventory.links = {{self, nvlink, board}, {nvlink, self, unknown}, {board, unknown, self}};
  EXPECT_THAT(topology_matrix(inventory), StartsWith("\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
                                                     "GPU0\t X \tNV12\tPIX\t0-2,8\t0\n"
                                                     "GPU1\tNV12\t X \t?\tN/A\tN/A\n"
                                                     "GPU2\tPIX\t?\t X \tN/A\tN/A\n"
                                                     "\nLegend:\n"));
  EXPECT_EQ(topology_matrix({}), "");
}

/// The first `columns` cells of every line that starts with the name of a GPU.
std::vector<std::vector<std::string>> cells(const std::string& text, std::size_t columns) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("GPU")) continue;
    std::istringstream words(line);
    std::vector<std::string> row;
    for (std::string word; row.size() < columns && words >> word;) row.push_back(word);
    rows.push_back(row);
  }
  return rows;
}

/// The vendor's own program reads the simulator: one test a profile.
class VendorTopologyTest : public testing::TestWithParam<std::string> {};

TEST_P(VendorTopologyTest, AgreesCellForCell) {
  const char* program = std::getenv("DROVER_NVIDIA_SMI");
  if (program == nullptr)
    GTEST_SKIP() << "set DROVER_NVIDIA_SMI to the program that scripts/fetch-nvidia-smi fetches";
  const auto profile = std::string(DROVER_SIM_PROFILES) + "/" + GetParam() + ".yaml";
  ::setenv("DROVER_SIM_PROFILE", profile.c_str(), 1);
  auto environment = minimal_environment();
  environment["DROVER_SIM_PROFILE"] = profile;
  environment["LD_LIBRARY_PATH"] = std::filesystem::path(DROVER_SIM_LIBRARY).parent_path();
  const auto theirs = run_command({.arguments = {program, "topo", "-m"}, .environment = environment});
  ASSERT_TRUE(theirs) << to_string(theirs.error());
  ASSERT_EQ(theirs->exit_status, 0) << theirs->output << theirs->errors;

  const auto inventory =
      discover(Nvml::load(DROVER_SIM_LIBRARY), {.kernel = std::nullopt, .simulation = GetParam()});
  ASSERT_FALSE(inventory.devices.empty());
  const auto columns = inventory.devices.size() + 3;  // its name, the matrix, CPU and NUMA affinity
  EXPECT_EQ(cells(topology_matrix(inventory), columns), cells(theirs->output, columns));
}

INSTANTIATE_TEST_SUITE_P(Profiles, VendorTopologyTest,
                         testing::Values("k80", "k40m", "minsky", "dgx1-v100", "dgx2", "dgx-a100", "dgx-h100",
                                         "pcie4", "mixed", "k80-396", "m60-396", "h100-615"),
                         [](const auto& info) {
                           auto name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace drover::gpu
