#include "engine/report.h"

#include <gtest/gtest.h>

namespace drover::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const TimePoint kBegin{hours(480'000)};
const ReportQuery kDay{kBegin, kBegin + hours(24)};

store::Allocation had(const std::string& user, const std::string& gpus, TimePoint from, TimePoint until,
                      const std::string& ending = "finished") {
  store::Allocation one;
  one.user = user;
  one.queue = user + "'s";
  one.gpus = gpus;
  one.from = from;
  one.until = until;
  one.ending = ending;
  return one;
}

Report report_of(ReportQuery query, const std::vector<store::Allocation>& all) {
  ReportSums sums(query);
  for (const auto& one : all) sums.add(one);
  return std::move(sums).finish();
}

double held(const Report& report, const std::string& key) {
  for (const auto& row : report.rows)
    if (row.key == key) return row.held;
  return -1;
}

TEST(Report, CountsWhatLiesWithinTheTime) {
  const auto report = report_of(kDay, {
                                          had("ann", "A=1000", kBegin - hours(2), kBegin + hours(1)),
                                          had("ann", "A=1000", kBegin + hours(23), kBegin + hours(30)),
                                          had("bob", "A=1000", kBegin - hours(5), kBegin - hours(4)),
                                          had("bob", "A=1000", kBegin + hours(24), kBegin + hours(25)),
                                          had("cid", "A=1000", kBegin - hours(9), kBegin + hours(90)),
                                      });
  EXPECT_EQ(held(report, "ann"), 7200);
  EXPECT_EQ(held(report, "bob"), -1) << "neither before nor after";
  EXPECT_EQ(held(report, "cid"), 24 * 3600);
  EXPECT_EQ(report.total.held, 7200 + 24 * 3600);
  EXPECT_EQ(report.total.ended.at("finished"), 1) << "the others ended later";
  EXPECT_EQ(report.total.running, 2);
}

TEST(Report, TwoTimesThatMeetSumUpToTheWhole) {
  const std::vector<store::Allocation> all{
      had("ann", "A=333 B=1000", kBegin + minutes(7), kBegin + hours(20)),
      had("ann", "A=250", kBegin, kBegin + hours(12), "failed")};
  const auto noon = kBegin + hours(12);
  const auto first = report_of({kBegin, noon}, all), second = report_of({noon, kBegin + hours(24)}, all);
  const auto whole = report_of(kDay, all);
  EXPECT_NEAR(first.total.held + second.total.held, whole.total.held, 1e-6);
  EXPECT_EQ(first.total.ended.size(), 0u) << "what ends with the time ends behind it";
  EXPECT_EQ(second.total.ended, whole.total.ended);
}

TEST(Report, SharesAndSeveralGpus) {
  const auto all = {had("ann", "A=1000 B=1000", kBegin, kBegin + hours(1)),
                    had("bob", "A=250", kBegin, kBegin + hours(2)),
                    had("cid", "", kBegin, kBegin + hours(3))};
  const auto by_user = report_of(kDay, all);
  EXPECT_EQ(held(by_user, "ann"), 7200);
  EXPECT_EQ(held(by_user, "bob"), 1800);
  EXPECT_EQ(held(by_user, "cid"), 0) << "it had no GPU, and still ran";
  auto query = kDay;
  query.by = ReportBy::kGpu;
  const auto by_gpu = report_of(query, all);
  EXPECT_EQ(held(by_gpu, "A"), 3600 + 1800);
  EXPECT_EQ(held(by_gpu, "B"), 3600);
  EXPECT_EQ(by_gpu.rows.size(), 2u);
  EXPECT_EQ(by_gpu.total.ended.at("finished"), 3) << "each attempt once";
  query.by = ReportBy::kQueue;
  EXPECT_EQ(held(report_of(query, all), "ann's"), 7200);
}

TEST(Report, TwoPartsOfOneGpuAreOneRow) {
  auto query = kDay;
  query.by = ReportBy::kGpu;
  const auto report = report_of(query, {had("ann", "A=142 A=142", kBegin, kBegin + seconds(1000))});
  EXPECT_NEAR(held(report, "A"), 284, 1e-9);
  EXPECT_EQ(report.rows.front().ended.at("finished"), 1);
}

TEST(Report, WhatIsUnderWayOrGoesOnHasNotEnded) {
  const auto report = report_of(kDay, {had("ann", "A=1000", kBegin, kDay.until, ""),
                                       had("ann", "B=500", kBegin, kBegin + hours(1), "resized"),
                                       had("ann", "B=250", kBegin + hours(1), kDay.until, "")});
  EXPECT_EQ(report.total.held, 24 * 3600 + 1800 + 23 * 900);
  EXPECT_EQ(report.total.running, 2);
  EXPECT_TRUE(report.total.ended.empty());
}

TEST(Report, FailuresByCause) {
  auto memory = had("ann", "A=1000", kBegin, kBegin + hours(1), "failed");
  memory.cause = "out_of_memory";
  auto lost = had("ann", "A=1000", kBegin, kBegin + hours(1), "lost");
  lost.cause = "lost";
  auto stopped = had("ann", "A=1000", kBegin, kBegin + hours(1), "preempted");
  stopped.cause = "preempted";
  const auto report =
      report_of(kDay, {memory, memory, lost, stopped, had("ann", "", kBegin, kBegin, "failed")});
  const std::map<std::string, std::int64_t> failures{{"lost", 1}, {"out_of_memory", 2}, {"unknown", 1}};
  EXPECT_EQ(report.total.failures, failures);
  EXPECT_EQ(report.total.ended.at("preempted"), 1);
}

TEST(Report, Waits) {
  const auto waited = [](seconds wait, TimePoint started) {
    auto one = had("ann", "A=1000", kBegin, kBegin + hours(1));
    one.started = started;
    one.waited = wait;
    return one;
  };
  const auto report =
      report_of(kDay, {waited(seconds(10), kBegin), waited(seconds(40), kBegin + hours(2)),
                       waited(seconds(4), kBegin), waited(seconds(20), kBegin),
                       waited(hours(9), kBegin - seconds(1)), had("ann", "", kBegin, kBegin)});
  const auto& waits = report.total.waits;
  EXPECT_EQ(waits.count, 4) << "not of one that began before";
  EXPECT_EQ(waits.median, seconds(15));
  EXPECT_EQ(waits.longest, seconds(40));
  EXPECT_EQ(waits.mean, std::chrono::milliseconds(18'500));
  EXPECT_EQ(report_of(kDay, {}).total.waits.count, 0);
}

TEST(Report, UsedIsWhatWasMeasuredInPart) {
  auto one = had("ann", "A=1000 B=1000", kBegin - hours(1), kBegin + hours(1));
  one.used = hours(1);
  const auto report = report_of(kDay, {one, had("bob", "A=1000", kBegin, kBegin + hours(1))});
  EXPECT_EQ(report.rows[0].used, 1800) << "half of its time lies before";
  EXPECT_EQ(report.rows[1].used, std::nullopt);
  EXPECT_EQ(report.total.used, 1800);
  auto query = kDay;
  query.by = ReportBy::kGpu;
  EXPECT_EQ(report_of(query, {one}).rows[0].used, 900) << "of each GPU its part";
}

TEST(Report, ClockThatWasSetBackMakesNothingNegative) {
  const auto report = report_of(kDay, {had("ann", "A=1000", kBegin + hours(2), kBegin + hours(1)),
                                       had("ann", "nonsense B= =5", kBegin, kBegin + hours(1))});
  EXPECT_EQ(report.total.held, 0.005 * 3600);
}

}  // namespace
}  // namespace drover::engine
