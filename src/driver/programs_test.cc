#include "driver/programs.h"

#include <gtest/gtest.h>

#include "base/fake_tree.h"
#include "driver/fake_elf.h"

namespace drover::driver {
namespace {

class FindProgramTest : public ::testing::Test {
 protected:
  /// "path <- file".
  std::string found() const {
    const auto program = find_program(*Root::open(tree_.root()), "nvidia-smi", {"/usr/local/nvidia/lib64"});
    return program ? program->path + " <- " + program->file.path : "none";
  }
  void script(const std::string& path) {
    tree_.file(path, "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi\n");
  }
  void program(const std::string& path) { tree_.file(path, fake_elf({.machine = kX86_64})); }
  FakeTree tree_;
};

TEST_F(FindProgramTest, WhereDistributionsKeepThemComesFirst) {
  EXPECT_EQ(found(), "none");
  program("usr/local/nvidia/bin/nvidia-smi");
  program("usr/sbin/nvidia-smi");
  EXPECT_EQ(found(), "/usr/sbin/nvidia-smi <- /usr/sbin/nvidia-smi");
}

TEST_F(FindProgramTest, TheProgramGoesBeforeAScriptThatStartsIt) {
  script("usr/bin/nvidia-smi");
  EXPECT_EQ(found(), "/usr/bin/nvidia-smi <- /usr/bin/nvidia-smi");
  program("usr/local/nvidia/bin/nvidia-smi");
  EXPECT_EQ(found(), "/usr/bin/nvidia-smi <- /usr/local/nvidia/bin/nvidia-smi");
}

}  // namespace
}  // namespace drover::driver
