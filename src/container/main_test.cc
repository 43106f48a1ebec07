#include <gtest/gtest.h>

#include <string_view>

#include "container/shim.h"

// The test program is its own `drover shim`: the containerizer under test starts this executable.
int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "shim")
    return drover::container::run_shim(argv[2], drover::container::kShimWordDescriptor);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
