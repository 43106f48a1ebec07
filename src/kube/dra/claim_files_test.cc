#include "kube/dra/claim_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fake_tree.h"
#include "base/files.h"

namespace drover::kube::dra {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class ClaimFilesTest : public ::testing::Test {
 protected:
  FakeTree tree;
  ClaimFolders files{tree / "plugins/gpu.nvidia.com", tree / "cdi", "k8s.gpu.nvidia.com", tree / "shares"};
};

TEST_F(ClaimFilesTest, HaveNothingAtFirst) {
  EXPECT_EQ(files.read_checkpoint().value(), std::nullopt);
  EXPECT_TRUE(files.read_specifications().value().empty());
  EXPECT_TRUE(files.remove_specification("a"));
}

TEST_F(ClaimFilesTest, KeepTheCheckpointForRootAlone) {
  ASSERT_TRUE(files.write_checkpoint("one"));
  ASSERT_TRUE(files.write_checkpoint("two"));
  EXPECT_EQ(files.read_checkpoint().value(), "two");
  const auto mode = std::filesystem::status(tree / "plugins/gpu.nvidia.com/checkpoint.json").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ASSERT_TRUE(files.set_checkpoint_aside());
  EXPECT_EQ(files.read_checkpoint().value(), std::nullopt);
  EXPECT_EQ(read_file(tree / "plugins/gpu.nvidia.com/checkpoint.json.unreadable").value_or(""), "two");
}

TEST_F(ClaimFilesTest, SetAsideWhatNobodyCanRead) {
  const auto checkpoint = tree / "plugins/gpu.nvidia.com/checkpoint.json";
  tree.folder("plugins/gpu.nvidia.com/checkpoint.json/folder");
  EXPECT_EQ(files.read_checkpoint().error().kind, ErrorKind::kCorrupt);
  ASSERT_TRUE(files.set_checkpoint_aside());
  tree.file("plugins/gpu.nvidia.com/checkpoint.json", "{");
  std::filesystem::resize_file(checkpoint, kMaxTextFile + 1);
  EXPECT_EQ(files.read_checkpoint().error().kind, ErrorKind::kCorrupt);
  ASSERT_TRUE(files.set_checkpoint_aside());
  EXPECT_EQ(files.read_checkpoint().value(), std::nullopt);
}

TEST_F(ClaimFilesTest, SeeTheirOwnSpecificationsAndThoseOfNvidiasDriver) {
  tree.file("cdi/nvidia.json", "another's").file("cdi/k8s.gpu.nvidia.com-claim_b.yaml", "old");
  tree.file("cdi/k8s.gpu.nvidia.com-claim_..x.json", "no uid")
      .file("cdi/k8s.gpu.nvidia.com-claim_c.tmp", "no file");
  ASSERT_TRUE(files.write_specification("a", "text"));
  EXPECT_THAT(files.read_specifications().value(), ElementsAre(Pair("a", "text"), Pair("b", "old")));
  ASSERT_TRUE(files.write_specification("b", "new"));
  EXPECT_FALSE(std::filesystem::exists(tree / "cdi/k8s.gpu.nvidia.com-claim_b.yaml"));
  for (const char* uid : {"a", "b", "never"}) EXPECT_TRUE(files.remove_specification(uid));
  EXPECT_TRUE(files.read_specifications().value().empty());
  EXPECT_EQ(read_file(tree / "cdi/nvidia.json").value_or(""), "another's");
}

TEST_F(ClaimFilesTest, LoseWhatAKilledDriverHadBegunToWrite) {
  EXPECT_TRUE(files.remove_unfinished()) << "there is no folder yet";
  tree.file("cdi/.k8s.gpu.nvidia.com-claim_a.json.3a431331.tmp", "{")
      .file("cdi/.nvidia.json.3a431331.tmp", "another's")
      .file("plugins/gpu.nvidia.com/.checkpoint.json.00000000.tmp", "{");
  ASSERT_TRUE(files.write_specification("b", "text"));
  ASSERT_TRUE(files.remove_unfinished());
  const auto names = [&](const char* folder) { return Directory::open(tree / folder)->list().value(); };
  EXPECT_THAT(names("cdi"), ElementsAre(".nvidia.json.3a431331.tmp", "k8s.gpu.nvidia.com-claim_b.json"));
  EXPECT_THAT(names("plugins/gpu.nvidia.com"), ElementsAre());
}

TEST_F(ClaimFilesTest, PagesAreMadeOnceAndStay) {
  EXPECT_TRUE(files.remove_pages("a")) << "there is no folder yet";
  EXPECT_TRUE(files.list_pages().value().empty());
  const std::vector<share::Limit> limits{{"GPU-0", 8ULL << 30, 100}};
  ASSERT_TRUE(files.keep_pages("a", limits));
  EXPECT_EQ(files.pages_folder("a"), tree / "shares/a");
  const auto mode = std::filesystem::status(tree / "shares").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_all);
  const auto opened = share::Pages::open(Directory::open(files.pages_folder("a")).value());
  ASSERT_TRUE(opened) << to_string(opened.error());
  EXPECT_EQ(opened->limits(), limits);
  // What containers of the claim have written into, and what they are held to.
  const auto account = tree / "shares/a/share/account";
  std::filesystem::resize_file(account, 1);
  ASSERT_TRUE(files.keep_pages("a", {{"GPU-1", 1, 1}}));
  EXPECT_EQ(std::filesystem::file_size(account), 1U);
  ASSERT_TRUE(files.keep_pages("b", limits));
  EXPECT_THAT(files.list_pages().value(), ElementsAre("a", "b"));
  ASSERT_TRUE(files.remove_pages("a"));
  EXPECT_THAT(files.list_pages().value(), ElementsAre("b"));
}

TEST_F(ClaimFilesTest, HalfMadePagesAreNobodys) {
  tree.file("shares/a.unfinished/share/limits", "half").file("shares/b.unfinished/share/limits", "half");
  EXPECT_TRUE(files.list_pages().value().empty());
  ASSERT_TRUE(files.keep_pages("a", {{"GPU-0", 8ULL << 30, 100}}));
  EXPECT_TRUE(share::Pages::open(Directory::open(files.pages_folder("a")).value()));
  ASSERT_TRUE(files.remove_unfinished());
  EXPECT_THAT(Directory::open(tree / "shares")->list().value(), ElementsAre("a"));
  // A page that cannot be made is none.
  EXPECT_FALSE(files.keep_pages("c", {{"", 8ULL << 30, 100}}));
  EXPECT_THAT(files.list_pages().value(), ElementsAre("a"));
}

TEST(ClaimUid, IsNoPath) {
  EXPECT_TRUE(is_claim_uid("3b1c2f6e-1111-4222-8333-444455556666"));
  for (const auto& uid : {std::string(), std::string("../x"), std::string("a/b"), std::string("A"),
                          std::string(65, 'a'), std::string("-a"), std::string("a\0b", 3)})
    EXPECT_FALSE(is_claim_uid(uid)) << uid;
}

}  // namespace
}  // namespace drover::kube::dra
