#include "kube/usage/node_metrics.h"

#include <gmock/gmock.h>

#include "base/files.h"

namespace drover::kube {
namespace {

using testing::HasSubstr;

TEST(NodeMetrics, TellWhoAnswered) {
  const auto text = metrics::write(node_families({"1.2", true, false, 0.5, {{{}, 3, "_count"}}}));
  EXPECT_THAT(text, HasSubstr("drover_build_info{version=\"1.2\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("drover_source_up{source=\"kubelet\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("drover_source_up{source=\"container-runtime\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("drover_scrape_seconds 0.5\n"));
  EXPECT_THAT(text, HasSubstr("drover_kube_prepare_seconds_count 3\n"));
}

TEST(NodeMetrics, AreWhatTheDocumentationHas) {
  const auto page = read_file(DROVER_SOURCE_DIR "/docs/metrics.md").value();
  for (const auto& metric : node_catalogue())
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} | {} |\n", metric.name, to_string(metric.type),
                                            metric.help)));
}

}  // namespace
}  // namespace drover::kube
