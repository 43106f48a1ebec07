// Replays recorded jobs, with the times they really came and ran, under several disciplines of the queue.
// docs/benchmarks.md says what for.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>

#include "replay.h"

namespace drover::bench {
namespace {

using nlohmann::json;

struct Options {
  std::string data = DROVER_BENCH_DATA "/openb";
  std::string list = "default";
  int nodes = 5;
  int gpus = 8;
  int cpus = 128;
  int memory_gib = 768;
  bool json = false;
};

struct Row {
  std::string name;
  Discipline discipline;
  Known known = Known::kNothing;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"first come, first served", first_come_first_served},
      {"whoever fits", whoever_fits},
      {"Drover's queue", drover_queue},
      {"Drover's queue, with what it has learned", drover_queue, Known::kHistory},
      {"Drover's queue, time limits known", drover_queue, Known::kTimeLimits},
      {"shortest first (oracle)", shortest_first},
  };
  return all;
}

placement::Cluster make_cluster(const Options& options) {
  placement::Cluster cluster;
  for (int n = 0; n < options.nodes; ++n) {
    placement::Node node;
    node.name = fmt::format("node-{}", n);
    node.milli_cpus = options.cpus * 1000;
    node.memory_bytes = static_cast<std::uint64_t>(options.memory_gib) << 30;
    const auto count = static_cast<std::size_t>(options.gpus);
    for (int i = 0; i < options.gpus; ++i) {
      gpu::Device device;
      device.uuid = fmt::format("{}-{}", node.name, i);
      device.index = i;
      node.inventory.devices.push_back(device);
    }
    node.inventory.links.assign(count, std::vector<gpu::Link>(count));
    cluster.set_node(std::move(node));
  }
  return cluster;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The smallest value that at least this part of all is not above.
double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const auto count = std::ceil(part * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(count, 1.0)) - 1];
}

json measure(const Row& row, const placement::Cluster& cluster, const std::vector<RecordedJob>& jobs) {
  const auto begin = std::clock();
  const auto outcome = replay(cluster, jobs, row.discipline, row.known);
  const auto cpu_seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return {{"discipline", row.name},
          {"completion_mean_s", mean(outcome.completions)},
          {"wait_mean_s", mean(outcome.waits)},
          {"wait_p50_s", quantile(outcome.waits, 0.5)},
          {"wait_p99_s", quantile(outcome.waits, 0.99)},
          {"wait_max_s", quantile(outcome.waits, 1.0)},
          {"gpu_use", outcome.gpu_use},
          {"decision_ms", 1e3 * cpu_seconds / static_cast<double>(outcome.decisions)}};
}

void print(const json& row, double oracle) {
  const auto hours = [&](const char* name) { return row.at(name).get<double>() / 3600; };
  fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {:.1f} | {:.1f} | {:.1f} | {:.3f} |\n",
             row.at("discipline").get<std::string>(), hours("completion_mean_s"),
             row.at("completion_mean_s").get<double>() / oracle, hours("wait_mean_s"), hours("wait_p99_s"),
             hours("wait_max_s"), 100 * row.at("gpu_use").get<double>(), row.at("decision_ms").get<double>());
}

int run(const Options& options) {
  auto jobs = read_recorded_jobs(fmt::format("{}/openb_pod_list_{}.csv", options.data, options.list));
  if (!jobs) {
    fmt::print(stderr, "bench/online: {}\n", to_string(jobs.error()));
    return 2;
  }
  const auto cluster = make_cluster(options);
  const auto all = jobs->size();
  std::erase_if(*jobs,
                [&](const RecordedJob& each) { return !possible(cluster, each.job.gang).has_value(); });
  for (std::size_t i = 0; i < jobs->size(); ++i) (*jobs)[i].job.sequence = i;
  if (jobs->empty()) {
    fmt::print(stderr, "bench/online: no job of the list fits on such nodes\n");
    return 2;
  }
  json measured = {{"jobs", jobs->size()},   {"too_large", all - jobs->size()},
                   {"nodes", options.nodes}, {"gpus", options.gpus},
                   {"cpus", options.cpus},   {"memory_gib", options.memory_gib},
                   {"rows", json::array()}};
  for (const auto& row : rows()) measured["rows"].push_back(measure(row, cluster, *jobs));
  if (options.json) {
    fmt::print("{}\n", measured.dump(1));
    return 0;
  }
  fmt::print("{} jobs on {} nodes of {} GPUs, {} CPUs, {} GiB; {} that fit on none are left out\n\n",
             jobs->size(), options.nodes, options.gpus, options.cpus, options.memory_gib, all - jobs->size());
  fmt::print(
      "| discipline | completion h, mean | ÷ oracle | wait h, mean | p99 | longest | GPUs held % | ms a plan "
      "|\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  const auto oracle = measured["rows"].back().at("completion_mean_s").get<double>();
  for (const auto& row : measured["rows"]) print(row, oracle);
  return 0;
}

}  // namespace
}  // namespace drover::bench

int main(int argc, char** argv) {
  drover::bench::Options options;
  CLI::App app("Replays recorded jobs under several disciplines of the queue.", "bench/online");
  app.add_option("--data", options.data, "Folder of the list")->capture_default_str();
  app.add_option("--list", options.list, "Which list; it must have times")->capture_default_str();
  app.add_option("--nodes", options.nodes, "How many nodes")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--gpus", options.gpus, "GPUs of each")->check(CLI::Range(0, 64))->capture_default_str();
  app.add_option("--cpus", options.cpus, "CPUs of each")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--memory", options.memory_gib, "GiB of memory of each")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return drover::bench::run(options);
}
