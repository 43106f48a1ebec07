#pragma once

// Brings the daemon to where it is measured: so many apps with all their instances running and known to be
// well, and so many jobs. All through the API and the engine, as it comes in life.

#include "connection.h"
#include "rows.h"
#include "subject.h"

namespace drover::bench {

struct Size {
  int apps = 2000;
  int instances = 5;  ///< of each
  int jobs = 2000;
};

/// What that took.
std::vector<Row> fill(Subject& subject, Connection& api, const Size& size);

/// Ids of the tasks that run, in order.
std::vector<std::string> running_tasks(Subject& subject);
/// A check of the task has passed, or failed.
void report_health(Subject& subject, const std::string& task, bool passed);
/// Waits until so many tasks run and nothing else is under way; throws after some minutes.
void await_running(Subject& subject, std::size_t count);

/// Times one act, once for each round.
template <typename Act>
void time(Subject& subject, Row& row, int rounds, const Act& act) {
  for (int round = 0; round < rounds; ++round) {
    const auto cpu = subject.cpu_ms();
    const auto begin = std::chrono::steady_clock::now();
    act(round);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    row.wall.push_back(took.count());
    row.cpu.push_back(subject.cpu_ms() - cpu);
  }
}

/// Throws unless the answer has one of the statuses 200 to 204.
Answer expect_success(Answer answer, const std::string& what);

}  // namespace drover::bench
