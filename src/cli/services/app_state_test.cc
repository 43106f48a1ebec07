#include "cli/services/app_state.h"

#include <gtest/gtest.h>

namespace drover::cli {
namespace {

using nlohmann::json;

const json kNobodyWaits = {{"queue", json::array()}};
const TimePoint kNow = *parse_time("2026-01-01T00:01:00.000Z");

json checked_app(const json& tasks) {
  return {{"id", "/web"},
          {"instances", 2},
          {"tasksRunning", 1},
          {"tasksHealthy", 0},
          {"versionInfo", {{"lastConfigChangeAt", "2026-01-01T00:00:00.000Z"}}},
          {"healthChecks", {{{"path", "/"}, {"delaySeconds", 15}}}},
          {"tasks", tasks}};
}

json running_task(const char* started_at, const json& results) {
  return {{"state", "TASK_RUNNING"},
          {"version", "2026-01-01T00:00:00.000Z"},
          {"startedAt", started_at},
          {"healthCheckResults", results}};
}

json delayed(int seconds) {
  const auto reason = "its instances fail: the next one is started in " + std::to_string(seconds) + " s";
  return {{"queue",
           {{{"app", {{"id", "/web"}}},
             {"delay", {{"timeLeftSeconds", seconds}}},
             {"processedOffersSummary", {{"reasons", {reason}}}}}}}};
}

TEST(AppState, SaysWhenTheFirstHealthCheckIs) {
  const auto starting = running_task("2026-01-01T00:00:57.000Z", json::array());
  const auto state = app_state(checked_app(json::array({starting})), kNobodyWaits, kNow);
  EXPECT_EQ(sentence(state), "/web: 1/2 up, 0 healthy; waits: first health check in 12 s");
  const auto late =
      app_state(checked_app(json::array({starting})), kNobodyWaits, kNow + std::chrono::hours(1));
  EXPECT_EQ(waiting_words(late), "first health check");
  EXPECT_FALSE(is_news(state, late)) << "only time has gone by";
}

TEST(AppState, SaysWhyACheckFails) {
  const json result = {{"alive", false}, {"lastFailureCause", "connection refused"}};
  const auto state =
      app_state(checked_app(json::array({running_task("2026-01-01T00:00:00.000Z", json::array({result}))})),
                kNobodyWaits, kNow);
  EXPECT_EQ(waiting_words(state), "its health check fails: connection refused");
  EXPECT_EQ(state.newest_up, 0);
}

TEST(AppState, CountsTheNewestThatAreUp) {
  const json result = {{"alive", true}};
  const auto well = running_task("2026-01-01T00:00:00.000Z", json::array({result}));
  auto old = well;
  old["version"] = "2025-01-01T00:00:00.000Z";
  EXPECT_EQ(app_state(checked_app(json::array({well, old})), kNobodyWaits, kNow).newest_up, 1);
}

TEST(AppState, TimeThatGoesByIsNoNews) {
  const json app = {{"id", "/web"}, {"instances", 1}};
  const auto five = app_state(app, delayed(5), kNow), four = app_state(app, delayed(4), kNow);
  EXPECT_EQ(sentence(five), "/web: 0/1 up; waits: its instances fail: the next one is started in 5 s");
  EXPECT_NE(five, four);
  EXPECT_FALSE(is_news(five, four));
  EXPECT_TRUE(is_news(five, app_state(app, kNobodyWaits, kNow)));
}

TEST(AppState, WhatIsOfAnotherTypeIsNotThere) {
  const json app = {{"id", 7}, {"instances", "x"}, {"healthChecks", "x"}, {"tasks", {1, "x", nullptr}}};
  const json queue = {{"queue", {{{"app", "x"}, {"delay", 5}}}}};
  EXPECT_EQ(app_state(app, queue, kNow).up, "0/0");
}

}  // namespace
}  // namespace drover::cli
