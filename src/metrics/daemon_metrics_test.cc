#include "metrics/daemon_metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/files.h"

namespace drover::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DaemonMetrics, TellWhatTheDaemonDoes) {
  DaemonFacts facts;
  facts.version = "1.2";
  facts.tasks = {{"queued", 3}, {"running", 2}};
  facts.queues = {{"research", 3, 61.5, 2.25, 4, std::nullopt}};
  facts.apps = {{"/web", 4, 3, 2, 1}};
  facts.answer_times = {{{}, 8, "_count"}};
  facts.pulls = 2;
  facts.commits = {{{}, 7, "_count"}};
  facts.unsaved_events = 4;
  facts.lags = {{{}, 9, "_count"}};
  facts.pools = {{"files", 1, 5}};
  facts.answers = {{200, 12}, {429, 1}};
  facts.refused_connections = 6;
  const auto text = write(daemon_families(facts));
  EXPECT_THAT(text, Not(HasSubstr("drover_queue_guaranteed_gpus{")));
  for (const auto* line :
       {"drover_queue_waiting{queue=\"research\"} 3\n",
        "drover_queue_longest_wait_seconds{queue=\"research\"} 61.5\n",
        "drover_queue_used_gpus{queue=\"research\"} 2.25\n",
        "drover_queue_limit_gpus{queue=\"research\"} 4\n", "drover_app_wanted_instances{app=\"/web\"} 4\n",
        "drover_app_running_instances{app=\"/web\"} 3\n", "drover_app_healthy_instances{app=\"/web\"} 2\n",
        "drover_app_unhealthy_instances{app=\"/web\"} 1\n", "drover_api_answer_seconds_count 8\n",
        "drover_image_pulls 2\n", "drover_build_info{version=\"1.2\"} 1\n",
        "drover_tasks{state=\"queued\"} 3\n", "drover_journal_commit_seconds_count 7\n",
        "drover_journal_unsaved_events 4\n", "drover_control_lag_seconds_count 9\n",
        "drover_pool_running{pool=\"files\"} 1\n", "drover_pool_waiting{pool=\"files\"} 5\n",
        "drover_api_answers_total{code=\"429\"} 1\n", "drover_api_refused_connections_total 6\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(DaemonMetrics, AreWhatTheDocumentationHas) {
  const auto page = read_file(DROVER_SOURCE_DIR "/docs/metrics.md").value();
  for (const auto& metric : daemon_catalogue())
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} | {} |\n", metric.name, to_string(metric.type),
                                            metric.help)));
}

}  // namespace
}  // namespace drover::metrics
