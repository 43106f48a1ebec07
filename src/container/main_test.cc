#include <gtest/gtest.h>

#include <string_view>

#include "container/fetch/fetcher.h"
#include "container/oci_fixture.h"
#include "container/oom_score.h"
#include "container/shim.h"

// The test program is its own `drover shim`, `drover fetcher` and `drover with-oom-score`: the containerizer
// under test starts this executable. As `daemon STATE TASK` it is a daemon that launches one task and then
// only waits to be killed.
int main(int argc, char** argv) {
  using namespace drover::container;
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (argc == 3 && role == "shim") return run_shim(argv[2], kReadinessDescriptor);
  if (argc == 2 && role == "fetcher") return run_fetcher();
  if (argc >= 4 && role == kWithOomScore) return run_with_oom_score(argv + 2);
  if (argc == 4 && role == "daemon") return run_test_daemon(argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
