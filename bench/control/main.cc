// Measures the control plane: how long answers take and what events cost with thousands of apps, what others
// wait for while long answers are made, and what a thousand followers of events cost. docs/benchmarks.md says
// what for.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "changes.h"
#include "load.h"
#include "neighbours.h"
#include "reads.h"
#include "streams.h"

namespace drover::bench {
namespace {

using nlohmann::json;

struct Options {
  Size size;
  int rounds = 200;
  int followers = 1000;
  int events = 2000;
  std::vector<std::string> only;
  std::string program;
  bool json = false;

  bool wants(const std::string& part) const { return only.empty() || std::ranges::count(only, part) > 0; }
};

/// Both ends of every stream are in this process.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const Options& options) {
  Subject subject;
  Connection api(subject.port());
  auto measured = json::object();
  const auto add = [&](const char* part, const std::vector<Row>& rows) {
    for (const auto& row : rows) measured[part].push_back(to_json(row));
    if (options.json) return;
    print_table(rows);
    fmt::print("\n");
    std::fflush(stdout);
  };
  add("fill", fill(subject, api, options.size));
  if (options.wants("reads")) add("reads", time_reads(subject, api, options.rounds));
  if (options.wants("commands") && !options.program.empty())
    add("commands", time_commands(subject, options.program, options.rounds / 10 + 1));
  if (options.wants("neighbours")) {
    measured["neighbours"] = time_neighbours(subject, api, options.rounds);
    if (!options.json) print_neighbours(measured["neighbours"]);
  }
  if (options.wants("changes")) add("changes", time_changes(subject, api, options.size, options.rounds));
  if (options.wants("streams")) {
    measured["streams"] = time_streams(subject, api, options.followers, options.events);
    if (!options.json) print_streams(measured["streams"]);
  }
  if (options.json) fmt::print("{}\n", measured.dump(1));
  return 0;
}

}  // namespace
}  // namespace drover::bench

int main(int argc, char** argv) {
  drover::bench::Options options;
  CLI::App app("Measures the control plane. Exit status 2: something could not be measured.",
               "bench/control");
  app.add_option("--apps", options.size.apps)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--instances", options.size.instances, "Of each app")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--jobs", options.size.jobs)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--rounds", options.rounds, "Times that everything is asked for")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--followers", options.followers, "Of each stream of events")
      ->check(CLI::Range(1, 2000))
      ->capture_default_str();
  app.add_option("--events", options.events, "That each of them is sent")
      ->check(CLI::Range(4, 1'000'000))
      ->capture_default_str();
  app.add_option("--only", options.only, "Only this part; may be repeated")
      ->check(CLI::IsMember({"reads", "neighbours", "commands", "changes", "streams"}));
  app.add_option("--drover", options.program,
                 "The program whose commands are measured; none: they are left out")
      ->check(CLI::ExistingFile);
  app.add_flag("--json", options.json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  drover::bench::allow_many_files();
  try {
    return drover::bench::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench/control: {}\n", error.what());
    return 2;
  }
}
