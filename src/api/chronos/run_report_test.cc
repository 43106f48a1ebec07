#include "api/chronos/run_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "control/testing/schedules.h"

namespace drover::api::chronos {
namespace {

using control::testing::Scheduler;
using nlohmann::json;

struct Runs : Scheduler {
  Runs() : Scheduler(0) {
    auto job = schedule("nightly", "R/" + format_time(now) + "/PT1H");
    job.webhook = "http://example.org/runs";
    job.retries = 1;
    job.definition = R"({"owner":"a@example.org","cpus":0.5,"mem":128,"executor":""})";
    EXPECT_TRUE(define(job));
    go_to(now);
  }
  /// What the last step tells.
  std::vector<engine::WebhookMessage> told(const control::Event& event) {
    auto outcome = control::decide(machine.state, event, now);
    control::apply(machine.state, *outcome);
    std::vector<engine::WebhookMessage> messages;
    for (const auto& notice : outcome->notices)
      if (const auto* ended = std::get_if<control::notice::ScheduleRunEnded>(&notice))
        if (auto message = report_of(*ended, machine.state)) messages.push_back(std::move(*message));
    return messages;
  }
  std::vector<engine::WebhookMessage> ends(int status) {
    const auto id = running("nightly");
    (void)on(control::event::Started{id, now});
    workload::Ending ending;
    ending.exit_status = status;
    ending.finished_at = now;
    return told(control::event::Ended{id, ending});
  }
};

TEST(RunReport, TellsHowARunEndedInTheWordsOfChronosAndMore) {
  Runs runs;
  const auto messages = runs.ends(0);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].to, (workload::Webhook{false, "example.org", 80, "/runs", ""}));
  const auto body = json::parse(messages[0].body);
  EXPECT_EQ(body["subject"], "[Chronos] job 'nightly' succeeded");
  EXPECT_EQ(body["job"], "nightly");
  EXPECT_EQ(body["outcome"], "succeeded");
  EXPECT_EQ(body["to"], "a@example.org");
  EXPECT_EQ(body["command"], "work");
  EXPECT_EQ(body["cpus"], "0.5");
  EXPECT_EQ(body["successCount"], "1");
  EXPECT_EQ(body["due"], format_time(control::testing::kNow));
  EXPECT_EQ(body["lastError"], "");
  EXPECT_TRUE(body["taskId"].get<std::string>().starts_with("ct:1700000000000:0:nightly:"));
}

TEST(RunReport, TellsOfAFailureOnceNothingIsTriedAgain) {
  Runs runs;
  EXPECT_TRUE(runs.ends(3).empty());
  runs.go(std::chrono::seconds(5));
  const auto messages = runs.ends(3);
  ASSERT_EQ(messages.size(), 1U);
  const auto body = json::parse(messages[0].body);
  EXPECT_EQ(body["subject"], "[Chronos] job 'nightly' failed!");
  EXPECT_EQ(body["outcome"], "failed");
  EXPECT_EQ(body["attempt"], 1);
  EXPECT_EQ(body["message"], "exited with status 3");
  EXPECT_EQ(body["errorCount"], "1");
}

TEST(RunReport, NobodyIsToldWhereNobodyAsked) {
  Runs runs;
  auto silent = runs.record("nightly").schedule;
  silent.webhook.clear();
  ASSERT_TRUE(runs.define(silent));
  EXPECT_TRUE(runs.ends(0).empty());
}

}  // namespace
}  // namespace drover::api::chronos
