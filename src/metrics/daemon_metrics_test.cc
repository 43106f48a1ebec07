#include "metrics/daemon_metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/files.h"

namespace drover::metrics {
namespace {

using testing::HasSubstr;

TEST(DaemonMetrics, TellWhatTheDaemonDoes) {
  DaemonFacts facts;
  facts.version = "1.2";
  facts.tasks = {{"queued", 3}, {"running", 2}};
  facts.commits = {{{}, 7, "_count"}};
  facts.unsaved_events = 4;
  facts.lags = {{{}, 9, "_count"}};
  facts.pools = {{"files", 1, 5}};
  facts.answers = {{200, 12}, {429, 1}};
  facts.refused_connections = 6;
  const auto text = write(daemon_families(facts));
  for (const auto* line :
       {"drover_build_info{version=\"1.2\"} 1\n", "drover_tasks{state=\"queued\"} 3\n",
        "drover_journal_commit_seconds_count 7\n", "drover_journal_unsaved_events 4\n",
        "drover_control_lag_seconds_count 9\n", "drover_pool_running{pool=\"files\"} 1\n",
        "drover_pool_waiting{pool=\"files\"} 5\n", "drover_api_answers_total{code=\"429\"} 1\n",
        "drover_api_refused_connections_total 6\n"})
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
