#include "streams.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "followers.h"

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr std::chrono::minutes kStreamPatience{5};

double resident_mib() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void await_all(const Followers& followers, std::uint64_t events) {
  const auto end = std::chrono::steady_clock::now() + kStreamPatience;
  while (followers.fewest() < events) {
    if (followers.gone() > 0 || std::chrono::steady_clock::now() > end)
      throw std::runtime_error(fmt::format("A follower has seen {} of {} events, {} are gone",
                                           followers.fewest(), events, followers.gone()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Stream {
  const char* name;
  std::string target;
  std::uint64_t greeting;  ///< events that each is sent when it comes
  int events_each;         ///< that one act makes
  std::function<void(int)> act;
};

json measure(Subject& subject, const Stream& stream, int followers, int events) {
  const auto before = resident_mib();
  Followers all(subject.port(), stream.target, followers);
  // A request over each connection has been read when the daemon has answered it; there is no greeting on the
  // native stream, so everybody is given time by the first event.
  if (stream.greeting > 0) await_all(all, stream.greeting);
  stream.act(0);
  const auto first = stream.greeting + static_cast<std::uint64_t>(stream.events_each);
  await_all(all, first);
  const auto seen = all.fewest();
  const auto following = resident_mib();
  const auto acts = events / stream.events_each;
  const auto cpu = subject.cpu_ms();
  const auto begin = std::chrono::steady_clock::now();
  double most = following;
  for (int act = 1; act <= acts; ++act) {
    stream.act(act);
    if (act % 100 == 0) most = std::max(most, resident_mib());
  }
  const auto wanted =
      seen + static_cast<std::uint64_t>(acts) * static_cast<std::uint64_t>(stream.events_each);
  await_all(all, wanted);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return {{"stream", stream.name},
          {"followers", followers},
          {"events", acts * stream.events_each},
          {"fewest", all.fewest() - seen},
          {"gone", all.gone()},
          {"before_mib", before},
          {"following_mib", following},
          {"most_mib", most},
          {"after_mib", resident_mib()},
          {"wall_ms", took.count()},
          {"cpu_ms", subject.cpu_ms() - cpu}};
}

/// Those who do not read hold up nobody, and nothing is kept for each of them.
json measure_stalled(Subject& subject, const Stream& stream, int followers, int events) {
  const auto before = resident_mib();
  const Followers stalled(subject.port(), stream.target, followers, false);
  const auto cpu = subject.cpu_ms();
  double most = before;
  for (int act = 0; act < events / stream.events_each; ++act) {
    stream.act(act);
    if (act % 100 == 0) most = std::max(most, resident_mib());
  }
  return {{"stream", std::string(stream.name) + ", and nobody reads"},
          {"followers", followers},
          {"events", events},
          {"before_mib", before},
          {"following_mib", most},
          {"most_mib", std::max(most, resident_mib())},
          {"cpu_ms", subject.cpu_ms() - cpu}};
}

}  // namespace

json time_streams(Subject& subject, Connection& api, int followers, int events) {
  const auto tasks = running_tasks(subject);
  // What came before left some ill, or never looked at: from here on every act tells the same number of
  // events.
  for (const auto& task : tasks) report_health(subject, task, true);
  const auto last = json::parse(api.ask("GET", "/v1/events?follow=false&limit=1").body).at("events").back();
  const auto number = last.at("number").get<std::uint64_t>();
  const auto fall_ill_and_recover = [&](int act) {
    const auto& task = tasks[static_cast<std::size_t>(act) % tasks.size()];
    report_health(subject, task, false);
    report_health(subject, task, true);
  };
  const auto run_task = [&](int) {
    const auto made =
        expect_success(api.ask("POST", "/v1/tasks", R"({"command": ["true"]})"), "POST of a task");
    const auto id = json::parse(made.body).at("task").at("id").get<std::string>();
    expect_success(api.ask("POST", "/v1/tasks/" + id + "/stop"), "POST of a stop");
  };
  const auto native = fmt::format("/v1/events?after={}", number);
  const Stream marathon{"/v2/events", "/v2/events", 1, 5, fall_ill_and_recover};
  const Stream own{"/v1/events", fmt::format("/v1/events?after={}", number), 0, 4, run_task};
  json rows = json::array();
  rows.push_back(measure(subject, marathon, followers, events));
  rows.push_back(measure_stalled(subject, marathon, followers, events));
  rows.push_back(measure(subject, own, followers, events));
  return rows;
}

void print_streams(const json& streams) {
  fmt::print(
      "| stream | followers | events to each | MiB before | MiB while they follow | most MiB | MiB more | "
      "µs of the daemon's CPU for one event to one follower |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const auto& row : streams) {
    const double written = row["followers"].get<double>() * row["events"].get<double>();
    fmt::print("| `{}` | {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.1f} |\n",
               row["stream"].get<std::string>(), row["followers"].get<int>(), row["events"].get<int>(),
               row["before_mib"].get<double>(), row["following_mib"].get<double>(),
               row["most_mib"].get<double>(), row["most_mib"].get<double>() - row["before_mib"].get<double>(),
               row["cpu_ms"].get<double>() * 1000 / written);
  }
}

}  // namespace drover::bench
