#include "cli/commands/on_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/testing/run.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Runs a command line against a cluster that answers so.
struct ClusterHooks {
  json answer;
  std::vector<json> planned = {};
  KubeClusterOptions asked = {};

  testing::Ran run(std::vector<std::string> words) {
    auto hooks = testing::hooks();
    hooks.kube_explain = [this](const KubeClusterOptions& options, const std::string&) -> Result<json> {
      asked = options;
      return answer;
    };
    hooks.kube_plan = [this](const KubeClusterOptions& options,
                             const std::vector<json>& pods) -> Result<json> {
      asked = options;
      planned = pods;
      return answer;
    };
    hooks.kube_queues = [this](const KubeClusterOptions& options) -> Result<json> {
      asked = options;
      return answer;
    };
    std::vector<const char*> argv = {"drover"};
    for (const auto& word : words) argv.push_back(word.c_str());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    testing::Ran ran;
    ran.status = run_cli(static_cast<int>(argv.size()), argv.data(), hooks);
    ran.out = ::testing::internal::GetCapturedStdout();
    ran.err = ::testing::internal::GetCapturedStderr();
    return ran;
  }
};

TEST(OnCluster, ExplainsAPod) {
  ClusterHooks cluster{{{"pod", "team/train"},
                        {"state", "waits"},
                        {"place", 2},
                        {"of", 3},
                        {"queue", "research.vision"},
                        {"message", "0/1 nodes are available: 1 Insufficient cpu."},
                        {"ends", {"team/small"}},
                        {"warnings", {"the node b cannot be read"}}}};
  auto ran = cluster.run({"explain", "--pod", "team/train", "--scheduler-name", "gpus"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out,
            "Pod team/train waits at place 2 of 3, queue research.vision\n  would end: team/small\n"
            "  0/1 nodes are available: 1 Insufficient cpu.\n");
  EXPECT_THAT(ran.err, HasSubstr("the node b cannot be read"));
  EXPECT_EQ(cluster.asked.name, "gpus");
  cluster.answer = {
      {"pod", "team/train"}, {"state", "bound"}, {"node", "a\x1b[2J"}, {"gpus", {"GPU-1", "GPU-2"}}};
  ran = cluster.run({"explain", "--pod", "train"});
  EXPECT_THAT(ran.out, HasSubstr("\n  with GPU GPU-1, GPU-2\n"));
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(json::parse(cluster.run({"explain", "--pod", "train", "--json"}).out).at("state"), "bound");
  EXPECT_NE(cluster.run({"explain"}).status, 0);
  EXPECT_NE(cluster.run({"explain", "task", "--pod", "train"}).status, 0);
}

TEST(OnCluster, PlansWhatTheFlagsSay) {
  ClusterHooks cluster{
      {{"starts_now", true}, {"pods", {{{"pod", "team/x"}, {"state", "starts"}, {"node", "a"}}}}}};
  auto ran = cluster.run({"plan", "--kube", "--gpus", "2", "--cpus", "1.5", "--mem", "1GiB", "--queue",
                          "research.vision", "--namespace", "team", "--label", "a=b", "--gang", "2"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "Pod team/x would start now on a\n");
  ASSERT_EQ(cluster.planned.size(), 2U);
  const auto& pod = cluster.planned.front();
  EXPECT_EQ(pod["spec"]["schedulerName"], "drover");
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"]["limits"],
            json({{"nvidia.com/gpu", 2}, {"cpu", "1500m"}, {"memory", 1 << 30}}));
  EXPECT_EQ(pod["metadata"]["namespace"], "team");
  EXPECT_EQ(pod["metadata"]["labels"]["drover/queue"], "research.vision");
  EXPECT_EQ(pod["metadata"]["annotations"]["drover/gang-size"], "2");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--gpus", "0.5"}, {"--interconnect", "nvlink"}, {"--nic", "require"}}) {
    std::vector<std::string> all{"plan", "--kube"};
    all.insert(all.end(), words.begin(), words.end());
    ran = cluster.run(all);
    EXPECT_NE(ran.status, 0);
    EXPECT_THAT(ran.err, HasSubstr("drover: " + words.front() + ": "));
  }
  cluster.answer = {{"starts_now", false},
                    {"pods",
                     {{{"pod", "team/x-0"}, {"state", "waits"}, {"message", "no room"}},
                      {{"pod", "team/x-1"}, {"state", "waits"}, {"message", "no room"}}}}};
  ran = cluster.run({"plan", "--kube", "--gpus", "2"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.out, "Pod team/x-0 would wait\n  no room\nPod team/x-1 would wait\n");
}

TEST(OnCluster, PlansThePodsOfAFile) {
  ClusterHooks cluster{{{"starts_now", true}, {"pods", json::array()}}};
  const auto file = ::testing::TempDir() + "pods.yaml";
  std::ofstream(file)
      << "kind: Pod\nmetadata: {name: a}\n---\nkind: List\nitems: [{kind: Pod, metadata: {name: b}}]\n";
  EXPECT_EQ(cluster.run({"plan", "--kube", "-f", file}).status, 0);
  ASSERT_EQ(cluster.planned.size(), 2U);
  EXPECT_EQ(cluster.planned.back()["metadata"]["name"], "b");
  EXPECT_NE(cluster.run({"plan", "-f", file}).status, 0);
  std::ofstream(file) << "kind: [";
  EXPECT_THAT(cluster.run({"plan", "--kube", "-f", file}).err, HasSubstr("pods.yaml:"));
}

TEST(OnCluster, ListsQueuesAsTheDaemonDoes) {
  ClusterHooks cluster{{{"queues",
                         {{{"queue", "research.vision"},
                           {"used", {{"gpus", 3.0}}},
                           {"limit", {{"gpus", 4.0}}},
                           {"weight", 2},
                           {"users", {"team"}},
                           {"waiting",
                            {{{"id", "team/train"},
                              {"user", "team"},
                              {"wanted", {{"gpus", 2.0}}},
                              {"members", 1},
                              {"priority", 0},
                              {"submitted_at", "2026-01-01T00:00:00Z"},
                              {"reasons", {"0/1 nodes are available"}},
                              {"place", 1}}}}}}}}};
  const auto ran = cluster.run({"queue", "--kube"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, HasSubstr("research.vision  3 GPUs"));
  EXPECT_THAT(ran.out, HasSubstr("0/1 nodes are available"));
  EXPECT_EQ(json::parse(cluster.run({"queue", "ls", "--kube", "--json"}).out), cluster.answer);
  EXPECT_NE(cluster.run({"queue", "--kubeconfig", "x"}).status, 0);
}

}  // namespace
}  // namespace drover::cli
