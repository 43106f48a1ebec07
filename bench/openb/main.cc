// How much of a recorded cluster each policy fills: docs/benchmarks.md says by which method.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "baselines.h"
#include "drover_policy.h"
#ifdef DROVER_BENCH_BOUND
#include "filling_bound.h"
#endif
#include "made_up.h"
#include "report.h"

namespace drover::bench {
namespace {

struct Options {
  std::string data = DROVER_BENCH_DATA "/openb";
  std::vector<std::string> lists{"default", "cpu250", "gpushare100", "gpuspec33", "multigpu20"};
  std::vector<std::string> policies{"Random", "BestFit", "FGD", "Drover"};
  int seeds = 10;
  std::uint64_t first_seed = 42;
  int made_up = 0;
  std::vector<int> multiples;
  int clones = 0;
  bool whole = false;
  bool bounds = true;
  bool json = false;
};

const std::vector<int> kLevels{100, 130};

const std::map<std::string, MakePolicy> kPolicies{{"Random", make_random},
                                                  {"BestFit", make_best_fit},
                                                  {"FGD", make_fgd},
                                                  {"Drover", make_drover},
                                                  {"Untold", make_untold_drover}};

struct List {
  std::string name;
  Trace trace;
};

Result<std::vector<List>> read_lists(const Options& options) {
  std::vector<List> lists;
  for (const auto& name : options.lists) {
    DROVER_TRY(auto trace, read_trace(options.data, name));
    if (options.whole)
      lists.push_back({name + ", whole", without_shares(trace)});
    else
      lists.push_back({name, std::move(trace)});
  }
  if (lists.empty()) return fail(ErrorKind::kInvalid, "no list is named");
  const auto like = lists.front().trace;
  for (const auto percent : options.multiples)
    lists.push_back({fmt::format("multiples-{}", percent),
                     with_multiples(like, percent, static_cast<std::uint64_t>(options.clones))});
  for (int i = 0; i < options.made_up; ++i)
    lists.push_back({fmt::format("made-up-{}", i), make_up(like, static_cast<std::uint64_t>(i))});
  return lists;
}

Status measure(const List& list, const std::string& policy, const Options& options, Report& report) {
  std::map<int, std::vector<double>> allocations;
  std::vector<double> times;
  for (int i = 0; i < options.seeds; ++i) {
    const auto seed = options.first_seed + static_cast<std::uint64_t>(i);
    const auto arrivals = make_arrivals(list.trace, seed);
    auto outcome = simulate(list.trace, arrivals, seed, kLevels, kPolicies.at(policy));
    if (!outcome) return Failure(context(std::move(outcome).error(), policy + " on list " + list.name));
    for (const auto& [level, allocation] : outcome->allocation) allocations[level].push_back(allocation);
    times.push_back(outcome->microseconds_per_pod);
  }
  for (const auto& [level, values] : allocations)
    report.rows.push_back({list.name, level, policy, summarize(values), summarize(times)});
  return {};
}

#ifdef DROVER_BENCH_BOUND
void measure_bounds(const List& list, const Options& options, Report& report) {
  FillingBound bound(list.trace);
  for (const auto level : kLevels) {
    std::vector<double> plain, without_refusal;
    for (int i = 0; i < options.seeds; ++i) {
      const auto bounds =
          bound.bounds(make_arrivals(list.trace, options.first_seed + static_cast<std::uint64_t>(i)), level);
      plain.push_back(bounds.plain);
      without_refusal.push_back(bounds.without_refusal);
    }
    report.bounds.push_back({list.name, level, summarize(plain).mean, summarize(without_refusal).mean});
  }
}
#else
void measure_bounds(const List&, const Options&, Report& report) {
  report.no_bounds = "this build has no Clp: run scripts/install-dependencies --bench, then build again";
}
#endif

Status run(const Options& options) {
  DROVER_TRY(const auto lists, read_lists(options));
  Report report{.seeds = options.seeds, .rows = {}, .bounds = {}, .no_bounds = {}};
  for (const auto& list : lists) {
    for (const auto& policy : options.policies) DROVER_CHECK_OK(measure(list, policy, options, report));
    if (options.bounds) measure_bounds(list, options, report);
  }
  if (options.json)
    fmt::print("{}\n", to_json(report).dump(1));
  else
    print(report);
  return {};
}

}  // namespace
}  // namespace drover::bench

int main(int argc, char** argv) {
  drover::bench::Options options;
  CLI::App app("Fills a recorded cluster. Exit status 1: a policy broke a rule; 2: the input is wrong.",
               "bench/openb");
  app.add_option("--data", options.data, "Folder with openb_node_list_gpu_node.csv and openb_pod_list_*.csv")
      ->capture_default_str();
  app.add_option("--lists", options.lists, "Pod lists, by what follows openb_pod_list_")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--policies", options.policies, "Policies")
      ->delimiter(',')
      ->check(CLI::IsMember(drover::bench::kPolicies))
      ->capture_default_str();
  app.add_option("--seeds", options.seeds, "Orders of arrival: so many seeds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--first-seed", options.first_seed, "The others follow it")->capture_default_str();
  app.add_option("--made-up", options.made_up, "So many lists that are made up, on the same nodes")
      ->check(CLI::Range(0, 1000));
  app.add_option(
         "--multiples", options.multiples,
         "Lists of the first one's pods and clones of those of several GPUs, which want so many percent")
      ->delimiter(',')
      ->check(CLI::Range(1, 99));
  app.add_option("--clones", options.clones, "Which random pods are cloned")->check(CLI::Range(0, 1000));
  app.add_flag("--whole", options.whole, "Without the pods that want a share of a GPU");
  app.add_flag("!--no-bounds", options.bounds, "Without the bounds, which take the most time");
  app.add_flag("--json", options.json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto done = drover::bench::run(options);
  if (done) return 0;
  fmt::print(stderr, "bench/openb: {}{}\n", to_string(done.error()),
             done.error().path.empty() ? "" : ": " + done.error().path);
  return done.error().kind == drover::ErrorKind::kInternal ? 1 : 2;
}
