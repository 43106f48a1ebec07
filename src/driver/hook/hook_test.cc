#include "driver/hook/hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fake_tree.h"
#include "base/files.h"
#include "driver/fake_elf.h"
#include "driver/fake_ld_cache.h"
#include "driver/ld_cache.h"

namespace drover::driver {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;

class CdiHookTest : public ::testing::Test {
 protected:
  ContainerRoot root() { return ContainerRoot::open(container_.root()).value(); }
  std::vector<LdCacheEntry> cache() {
    return parse_ld_cache(read_file(container_ / "etc/ld.so.cache").value()).value();
  }
  void add_driver() {
    container_.file("lib64/libcuda.so.1", fake_elf(library_of(kX86_64, ElfClass::k64, "libcuda.so.1")));
  }

  FakeTree container_;
  FakeTree outside_;
};

TEST_F(CdiHookTest, LinksAreMadeWithTheirFoldersAndReplaceWhatIsThere) {
  container_.file("usr/lib/old.so", "x").link("usr/lib/link.so", "elsewhere");
  ASSERT_TRUE(create_symlinks(
      root(), {"a.so.1::/usr/lib/gbm/deep/a.so", "b::/usr/lib/old.so", "c::/usr/lib/link.so"}));
  EXPECT_EQ(fs::read_symlink(container_ / "usr/lib/gbm/deep/a.so"), "a.so.1");
  EXPECT_EQ(fs::read_symlink(container_ / "usr/lib/old.so"), "b");
  EXPECT_EQ(fs::read_symlink(container_ / "usr/lib/link.so"), "c");
  for (const char* wrong : {"a", "::/a", "a::relative", "a::/", "a::/usr/..", "a::/usr/lib/gbm"})
    EXPECT_FALSE(create_symlinks(root(), {wrong})) << wrong;
}

TEST_F(CdiHookTest, NoLinkLeadsOutside) {
  const std::string up = "../../../../../../../../../../..";
  for (const auto& target : {outside_.root(), up + outside_.root(), "/proc/self/root" + outside_.root()}) {
    FakeTree hostile;
    hostile.link("etc", target).link("lib64", target);
    const auto container = ContainerRoot::open(hostile.root()).value();
    (void)create_symlinks(container, {"x::/lib64/libcuda.so", "x::/etc/ld.so.cache"});
    (void)container.put_file("/etc/ld.so.cache", "x");
    EXPECT_TRUE(fs::is_empty(outside_.root())) << target;
  }
}

TEST_F(CdiHookTest, AFileThatIsALinkIsReplacedAndNotFollowed) {
  outside_.file("precious", "the host's");
  add_driver();
  container_.link("etc/ld.so.cache", outside_ / "precious");
  ASSERT_TRUE(update_ld_cache(root(), {"/lib64/libcuda.so.1", "/lib64/libabsent.so.1"}));
  EXPECT_EQ(read_file(outside_ / "precious").value(), "the host's");
  EXPECT_FALSE(fs::is_symlink(container_ / "etc/ld.so.cache"));
  EXPECT_THAT(cache(), ::testing::ElementsAre(LdCacheEntry{"libcuda.so.1", "/lib64/libcuda.so.1"}));
}

TEST_F(CdiHookTest, ADamagedCacheIsWrittenAnewAndAGoodOneExtended) {
  add_driver();
  container_.file("etc/ld.so.cache", "glibc-ld.so.cache1.1 and nothing more");
  ASSERT_TRUE(update_ld_cache(root(), {"/lib64/libcuda.so.1"}));
  EXPECT_EQ(cache().size(), 1U);
  container_.file("etc/ld.so.cache", fake_ld_cache({{"libc.so.6", "/lib/libc.so.6"}}));
  ASSERT_TRUE(update_ld_cache(root(), {"/lib64/libcuda.so.1"}));
  EXPECT_THAT(cache(), Contains(LdCacheEntry{"libc.so.6", "/lib/libc.so.6"}));
  EXPECT_EQ(cache().size(), 2U);
}

TEST_F(CdiHookTest, WithoutLibrariesNothingIsTouched) {
  ASSERT_TRUE(update_ld_cache(root(), {"/lib64/libcuda.so.1"}));
  EXPECT_TRUE(fs::is_empty(container_.root()));
}

TEST_F(CdiHookTest, WhatIsMountedIsNotWrittenTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: it mounts";
  container_.folder("etc").folder("lib64");
  if (::mount(outside_.root().c_str(), (container_ / "etc").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "mounting is not allowed here";
  const auto made = create_symlinks(root(), {"x::/etc/deep/link", "y::/lib64/link"});
  ::umount2((container_ / "etc").c_str(), MNT_DETACH);
  EXPECT_TRUE(made);
  EXPECT_TRUE(fs::is_empty(outside_.root()));
  EXPECT_TRUE(fs::is_symlink(container_ / "lib64/link"));
}

TEST_F(CdiHookTest, AGuardIsWhatItMustBeOrTheContainerIsNotStarted) {
  outside_.file("guard", "ours").file("other", "ours");
  const auto wanted = [&](const std::string& path) { return outside_ / "guard" + "::" + path; };
  container_.folder("usr/lib");
  fs::create_hard_link(outside_ / "guard", container_ / "usr/lib/libcuda.so.1");
  container_.link("lib", "usr/lib");
  EXPECT_TRUE(check_guard(root(), {wanted("/usr/lib/libcuda.so.1"), wanted("/lib/libcuda.so.1")}));
  // As an image would have it look: other files, a link out of the container, nothing, a folder.
  container_.file("same", "ours").link("out", outside_ / "guard").link("round", "round").folder("folder");
  const auto up = "../../../../../../../../.." + outside_.root();
  for (const auto& path : {"/same", "/out", "/round", "/folder", "/none", "/proc/self/root"}) {
    const auto refused = check_guard(root(), {wanted("/usr/lib/libcuda.so.1"), wanted(path)});
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().kind, ErrorKind::kConflict) << path;
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr(path));
  }
  EXPECT_FALSE(check_guard(root(), {wanted(up + "/guard")}));
  for (const auto& wrong : {std::string("x"), std::string("::/x"), outside_ / "none" + "::/same"})
    EXPECT_FALSE(check_guard(root(), {wrong})) << wrong;
}

TEST_F(CdiHookTest, TheRootIsTheOneOfTheBundle) {
  FakeTree bundle;
  bundle.file("config.json", R"({"root": {"path": "rootfs"}})").folder("rootfs");
  const auto found = ContainerRoot::of_state(R"({"bundle": ")" + bundle.root() + R"("})");
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_TRUE(found->put_file("/file", "x"));
  EXPECT_TRUE(fs::exists(bundle / "rootfs/file"));
  for (const char* wrong :
       {"", "{}", "[]", "7", R"({"bundle": 7})", R"({"bundle": "relative"})", R"({"bundle": "/nowhere"})"})
    EXPECT_FALSE(ContainerRoot::of_state(wrong)) << wrong;
}

}  // namespace
}  // namespace drover::driver
