#include "load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "definitions.h"

namespace drover::bench {
namespace {

constexpr std::chrono::minutes kPatience{5};
constexpr int kAtOnce = 100;

}  // namespace

Answer expect_success(Answer answer, const std::string& what) {
  if (answer.status < 200 || answer.status > 204)
    throw std::runtime_error(fmt::format("{}: {} {}", what, answer.status, answer.body.substr(0, 500)));
  return answer;
}

std::vector<std::string> running_tasks(Subject& subject) {
  return subject.on_strand([&] {
    std::vector<std::string> ids;
    for (const auto& id : subject.engine().state().active)
      if (subject.engine().state().find(id)->state == control::TaskState::kRunning) ids.push_back(id);
    return ids;
  });
}

void report_health(Subject& subject, const std::string& task, bool passed) {
  subject.on_strand([&] {
    subject.engine().checked({.task_id = task, .check = "0", .passed = passed, .why = "it was looked at"});
  });
}

void await_running(Subject& subject, std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (running_tasks(subject).size() != count ||
         subject.on_strand([&] { return subject.engine().state().active.size(); }) != count) {
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error(fmt::format("Not {} but {} tasks run", count, running_tasks(subject).size()));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

std::vector<Row> fill(Subject& subject, Connection& api, const Size& size) {
  const auto count = size.apps * size.instances;
  Row all{.what = fmt::format("`PUT /v2/apps` of {} more apps, until all their instances run", kAtOnce),
          .items = std::min(kAtOnce, size.apps) * size.instances};
  for (int first = 0; first < size.apps; first += kAtOnce) {
    const auto behind = std::min(first + kAtOnce, size.apps);
    const auto definitions = app_definitions(first, behind, size.instances);
    time(subject, all, 1, [&](int) {
      expect_success(api.ask("PUT", "/v2/apps", definitions), "PUT /v2/apps");
      await_running(subject, static_cast<std::size_t>(behind * size.instances));
    });
  }
  Row well{.what = "an instance is found well for the first time", .items = 1};
  const auto tasks = running_tasks(subject);
  time(subject, well, count,
       [&](int round) { report_health(subject, tasks[static_cast<std::size_t>(round)], true); });
  Row jobs{.what = "`POST /v1/scheduler/iso8601`, a new job, while there are more and more", .items = 1};
  time(subject, jobs, size.jobs, [&](int round) {
    expect_success(api.ask("POST", "/v1/scheduler/iso8601", job_definition(round)), "POST of a job");
  });
  return {all, well, jobs};
}

}  // namespace drover::bench
