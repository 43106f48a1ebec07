#include "changes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "definitions.h"

namespace drover::bench {

std::vector<Row> time_changes(Subject& subject, Connection& api, const Size& size, int rounds) {
  const auto before = running_tasks(subject);
  const auto count = before.size();
  Row health{.what = "an instance's health changes", .items = 1};
  time(subject, health, rounds, [&](int round) {
    report_health(subject, before[static_cast<std::size_t>(round / 2) % count], round % 2 == 1);
  });
  Row same{.what = "a health check passes, as before", .items = 1};
  time(subject, same, rounds,
       [&](int round) { report_health(subject, before[static_cast<std::size_t>(round) % count], true); });
  Row tick{.what = "a tick", .items = 1};
  time(subject, tick, rounds, [&](int) { subject.on_strand([&] { subject.engine().tick(); }); });

  Row post{.what = "`POST /v2/apps`, a new app, until the answer", .items = 1};
  Row started{.what = "… until its one instance runs", .items = 1};
  for (int round = 0; round < rounds; ++round) {
    const auto definition = app_definition(size.apps + round, 1);
    time(subject, post, 1,
         [&](int) { expect_success(api.ask("POST", "/v2/apps", definition), "POST /v2/apps"); });
    time(subject, started, 1,
         [&](int) { await_running(subject, count + static_cast<std::size_t>(round) + 1); });
  }

  Row replaced{.what = "an instance is killed through the API, until another runs in its place", .items = 1};
  const auto all = count + static_cast<std::size_t>(rounds);
  const auto target = fmt::format("/v2/apps{}/tasks", app_id(0));
  time(subject, replaced, rounds, [&](int) {
    const auto tasks = nlohmann::json::parse(api.ask("GET", target).body).at("tasks");
    const auto id = tasks.at(0).at("id").get<std::string>();
    expect_success(api.ask("DELETE", target + "/" + id), "DELETE of an instance");
    await_running(subject, all);
  });
  return {health, same, tick, post, started, replaced};
}

}  // namespace drover::bench
