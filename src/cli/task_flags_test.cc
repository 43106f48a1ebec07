#include "cli/task_flags.h"

#include <gtest/gtest.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fake_tree.h"

namespace drover::cli {
namespace {

using nlohmann::json;

Result<json> request(std::vector<std::string> words) {
  CLI::App app;
  TaskFlags flags;
  add_task_flags(app, flags);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return task_request(flags, {"train"});
}

json body(const std::vector<std::string>& words) {
  auto made = request(words);
  EXPECT_TRUE(made) << to_string(made.error());
  if (!made) return {};
  for (const auto* usual : {"command", "env", "labels"}) made->erase(usual);
  return *made;
}

TEST(TaskFlags, VariablesOfFilesAndOfTheLine) {
  FakeTree files;
  files.file("a", "# A=1\nMODE=slow\r\n\nTEXT=\"a = b\"\nNOPE_IS_NOT_SET\nLAST=1").file("b", "LAST=2\n");
  const auto made = request({"--env-file", files / "a", "--env-file", files / "b", "--env", "MODE=fast"});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(made->at("env"), json({{"MODE", "fast"}, {"TEXT", "\"a = b\""}, {"LAST", "2"}}));
  const auto wrong = request({"--env-file", files.file("c", "=x\n") / "c"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "--env-file: '=x' is not of the form NAME=VALUE");
  EXPECT_FALSE(request({"--env-file", files / "d"}));
}

TEST(TaskFlags, GpusInThreeWays) {
  EXPECT_EQ(body({"--gpus", "2"}), json({{"gpus", 2}}));
  EXPECT_EQ(body({"--gpus", "0.5"}), json({{"gpus", 0.5}}));
  EXPECT_EQ(body({"--gpus", "2xA100,1xRTX 4090"}),
            json::parse(R"({"gpus": [{"count": 2, "model": "A100"}, {"count": 1, "model": "RTX 4090"}]})"));
  EXPECT_EQ(body({}), json::object());
}

TEST(TaskFlags, WhatGpusMustBeLike) {
  EXPECT_EQ(body({"--gpus", "2", "--gpu-model", "A100", "--gpu-model", "H100", "--gpu-mem", "40GiB",
                  "--gpu-cc", "8.0", "--gpu-ecc", "on", "--gpu-driver", "535.104", "--different-gpus",
                  "--interconnect", "nvlink:2"}),
            json::parse(R"({"gpus": 2, "gpu_model": ["A100", "H100"], "gpu_memory": "40GiB",
                            "gpu_compute_capability": "8.0", "gpu_ecc": true, "gpu_driver": "535.104",
                            "different_models": true, "interconnect": "nvlink:2"})"));
  EXPECT_EQ(body({"--gpu-ecc", "off"}), json({{"gpu_ecc", false}}));
}

TEST(TaskFlags, AFilterHoldsForEveryKindThatIsListed) {
  EXPECT_EQ(body({"--gpus", "1xA100,1xT4", "--gpu-mem", "16G", "--gpu-ecc", "on"}),
            json::parse(R"({"gpus": [{"count": 1, "model": "A100", "memory": "16G", "ecc": true},
                                     {"count": 1, "model": "T4", "memory": "16G", "ecc": true}]})"));
}

TEST(TaskFlags, AShareIsAPartOrASize) {
  EXPECT_EQ(body({"--gpu-share", "0.5"}), json({{"gpu_share", 0.5}}));
  EXPECT_EQ(body({"--gpu-share", "8GiB"}), json({{"gpu_share", "8GiB"}}));
}

TEST(TaskFlags, WhereAndWhen) {
  EXPECT_EQ(body({"--cpu-affinity", "require", "--nic",         "prefer",   "--constraint", "rack=r7",
                  "--constraint",   "rack=r8", "--constraint",  "zone=a=b", "--group",      "g",
                  "--gang",         "4",       "--arrangement", "spread",   "--queue",      "research/vision",
                  "--namespace",    "n",       "--priority",    "-5"}),
            json::parse(R"({"cpu_affinity": "require", "nic": "prefer",
                            "constraints": {"rack": ["r7", "r8"], "zone": ["a=b"]}, "group": "g",
                            "gang": {"size": 4, "arrangement": "spread"}, "queue": "research/vision",
                            "namespace": "n", "priority": -5})"));
}

TEST(TaskFlags, MistakesOfTheRequestNameTheFlag) {
  const std::vector<std::pair<std::string, std::string>> flags = {{"/gpus", "--gpus"},
                                                                  {"/gpus/0/count", "--gpus"},
                                                                  {"/gpu_memory", "--gpu-mem"},
                                                                  {"/gpu_compute_capability", "--gpu-cc"},
                                                                  {"/different_models", "--different-gpus"},
                                                                  {"/constraints/rack", "--constraint"},
                                                                  {"/gang/arrangement", "--arrangement"},
                                                                  {"/gang/size", "--gang"},
                                                                  {"/namespace", "--namespace"},
                                                                  {"/working_directory", "--workdir"},
                                                                  {"/gpusx", "/gpusx"},
                                                                  {"", ""}};
  for (const auto& [path, flag] : flags)
    EXPECT_EQ(in_flags({ErrorKind::kInvalid, "m", "h", path}).path, flag);
  const Error several{ErrorKind::kInvalid,
                      "The task has 2 mistakes\n  /gpu_share: no (hint)\n  /cpus: expected: more", "", ""};
  EXPECT_EQ(in_flags(several).message,
            "The task has 2 mistakes\n  --gpu-share: no (hint)\n  --cpus: expected: more");
}

}  // namespace
}  // namespace drover::cli
