// A year of faults. DROVER_SIMULATED_DAYS sets how many days each of the lives has; DROVER_SEED plays one of
// them again, as a failure says. A build with a sanitizer is many times slower, and plays less.

#include "control/testing/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace drover::control {
namespace {

using testing::Simulation;

long setting(const char* name, long fallback) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return text == nullptr ? fallback : std::strtol(text, nullptr, 10);
}

TEST(Simulation, AYearOfFaultsLeavesNothingUndone) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  constexpr long kDays = 4;
#else
  constexpr long kDays = 31;
#endif
  constexpr int kLives = 12;
  const auto days = setting("DROVER_SIMULATED_DAYS", kDays);
  const auto only = setting("DROVER_SEED", 0);
  std::int64_t crashes = 0, deployments = 0, preemptions = 0, starts = 0, steps = 0;
  std::int64_t timed = 0, late = 0, overlapping = 0, retried = 0, released = 0, updates = 0, evictions = 0;
  for (long seed = only == 0 ? 1 : only; seed <= (only == 0 ? kLives : only); ++seed) {
    // Each life has another month of the year: clocks are changed in two of them.
    const auto begin = testing::kNow + std::chrono::days(30) * ((seed - 1) % kLives);
    Simulation simulation(static_cast<std::uint64_t>(seed), begin);
    EXPECT_TRUE(simulation.run_until(simulation.now() + std::chrono::days(days)) && simulation.settle())
        << "with DROVER_SEED=" << seed << ": " << simulation.wrong;
    crashes += simulation.crashes;
    deployments += simulation.deployments;
    preemptions += simulation.preemptions;
    starts += simulation.starts();
    steps += simulation.steps;
    updates += simulation.updates();
    evictions += simulation.evictions();
    const auto& schedules = simulation.schedules();
    timed += schedules.timed;
    late += schedules.late;
    overlapping += schedules.overlapping;
    retried += schedules.retried;
    released += schedules.released;
  }
  std::puts(
      fmt::format("{} steps: {} crashes, {} deployments, {} starts, {} preemptions\nruns of schedules: {} at "
                  "their times, {} too late, {} while one went on, {} again, {} after others\n{} updates, {} "
                  "of them of preemptions",
                  steps, crashes, deployments, starts, preemptions, timed, late, overlapping, retried,
                  released, updates, evictions)
          .c_str());
  EXPECT_GT(crashes, 0);
  EXPECT_GT(deployments, 0);
  EXPECT_GT(preemptions, 0);
  EXPECT_GT(starts, deployments);
  for (const auto happened : {timed, late, overlapping, retried, released, updates, evictions})
    EXPECT_GT(happened, 0);
}

}  // namespace
}  // namespace drover::control
