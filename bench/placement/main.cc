// Measures placement: how good its choices are, and how long they take. docs/benchmarks.md says what for.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "churn.h"
#include "gangs.h"
#include "latency.h"
#include "regret.h"
#include "topologies.h"

namespace drover::bench {
namespace {

using nlohmann::json;

struct Options {
  std::string topologies = DROVER_BENCH_DATA "/topologies.json";
  bool json = false;
  std::vector<std::string> only;
  bool made_up = true;
  int most_gpus = placement::kMaxDevices;
  int samples = 2000;
  std::vector<int> nodes{100, 1000, 10'000};
  std::string policy = "pack";
  int decisions = 200'000;
  std::uint64_t seed = 1;

  bool wants(const std::string& part) const { return only.empty() || std::ranges::count(only, part) > 0; }
};

int run(const Options& options) {
  auto topologies = read_topologies(options.topologies);
  if (!topologies) {
    fmt::print(stderr, "bench/placement: {}\n", to_string(topologies.error()));
    return 2;
  }
  if (options.made_up)
    for (auto& made_up : made_up_topologies(options.seed)) topologies->push_back(std::move(made_up));
  std::erase_if(*topologies, [&](const Topology& topology) { return topology.gpus() > options.most_gpus; });

  auto measured = json::object();
  const auto add = [&](const std::string& part, const auto& measure, const auto& print) {
    if (!options.wants(part)) return;
    measured[part] = measure();
    if (!options.json) print(measured[part]);
  };
  add("regret", [&] { return measure_regret(*topologies, options.seed); }, print_regret);
  add(
      "churn", [&] { return measure_churn(options.nodes, options.policy, options.decisions, options.seed); },
      print_churn);
  add("gang", [&] { return measure_gangs(); }, print_gangs);
  add("latency", [&] { return measure_latency(*topologies, options.samples, options.seed); }, print_latency);

  if (options.json) fmt::print("{}\n", measured.dump(1));
  return measured.contains("regret") && count_mistakes(measured["regret"]) > 0 ? 1 : 0;
}

}  // namespace
}  // namespace drover::bench

int main(int argc, char** argv) {
  drover::bench::Options options;
  CLI::App app("Measures placement. Exit status 1: a choice was not the best; 2: the input is wrong.",
               "bench/placement");
  app.add_option("--topologies", options.topologies, "Machines, as in bench/data/topologies.json")
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print JSON");
  app.add_option("--only", options.only, "Only this part; may be repeated")
      ->check(CLI::IsMember({"regret", "churn", "gang", "latency"}));
  app.add_flag("!--no-made-up", options.made_up, "Only the machines of the file, none that are made up");
  app.add_option("--most-gpus", options.most_gpus, "Leave out machines with more GPUs");
  app.add_option("--samples", options.samples, "Times that each latency is measured")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--nodes", options.nodes, "Sizes of the clusters under churn")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--policy", options.policy, "How nodes are chosen there")
      ->check(CLI::IsMember({"pack", "spread", "fragmentation"}))
      ->capture_default_str();
  app.add_option("--decisions", options.decisions, "Made in each of these clusters")
      ->check(CLI::Range(10, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of everything random")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return drover::bench::run(options);
}
