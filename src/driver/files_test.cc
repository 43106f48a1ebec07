#include "driver/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/fake_tree.h"
#include "driver/fake_elf.h"
#include "driver/fake_ld_cache.h"
#include "driver/names.h"

namespace drover::driver {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const DriverLink* link_at(const DriverFiles& files, const std::string& path) {
  for (const auto& link : files.links)
    if (link.path == path) return &link;
  return nullptr;
}

std::vector<std::string> destinations(const DriverFiles& files) {
  std::vector<std::string> all;
  for (const auto& file : files.files) all.push_back(file.destination);
  return all;
}

/// A library with its version in its name, and the link that the loader looks for.
void add_library(FakeTree& tree, const std::string& folder, const std::string& name,
                 const std::string& version, const ElfFile& elf) {
  tree.file(folder + "/" + name + "." + version, fake_elf(elf));
  tree.link(folder + "/" + name + ".1", name + "." + version);
}

struct Layout {
  std::string folder;
  std::uint16_t machine;
  ElfClass elf_class;
  std::string destination;
  bool big_endian = false;
};

class EveryArchitectureTest : public testing::TestWithParam<Layout> {};

TEST_P(EveryArchitectureTest, FindsTheDriverWithoutALoaderCache) {
  const auto& layout = GetParam();
  FakeTree tree;
  auto elf = library_of(layout.machine, layout.elf_class, "libnvidia-ml.so.1");
  elf.big_endian = layout.big_endian;
  add_library(tree, layout.folder, "libnvidia-ml.so", "390.30", elf);
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_EQ(files->version, "390.30");
  EXPECT_THAT(files->files, ElementsAre(DriverFile{"/" + layout.folder + "/libnvidia-ml.so.390.30",
                                                   layout.destination + "/libnvidia-ml.so.390.30"}));
  EXPECT_THAT(files->links,
              ElementsAre(DriverLink{layout.destination + "/libnvidia-ml.so.1", "libnvidia-ml.so.390.30"}));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, EveryArchitectureTest,
    testing::Values(Layout{"usr/lib/x86_64-linux-gnu", kX86_64, ElfClass::k64, "lib64"},
                    Layout{"usr/lib64", kX86_64, ElfClass::k64, "lib64"},
                    Layout{"usr/lib/x86_64-linux-gnu/nvidia/current", kX86_64, ElfClass::k64, "lib64"},
                    Layout{"usr/lib/i386-linux-gnu", kI386, ElfClass::k32, "lib"},
                    Layout{"usr/lib/aarch64-linux-gnu", kAarch64, ElfClass::k64, "lib64"},
                    Layout{"usr/lib/arm-linux-gnueabihf", kArm, ElfClass::k32, "lib"},
                    Layout{"usr/lib/powerpc64le-linux-gnu", kPower64, ElfClass::k64, "lib64"},
                    Layout{"lib64", kPower64, ElfClass::k64, "lib64", true},
                    Layout{"lib", kAarch64, ElfClass::k64, "lib64"}));

TEST(FindTest, LoaderCacheComesFirst) {
  FakeTree tree;
  add_library(tree, "opt/driver", "libcuda.so", "390.30", library_of(kX86_64));
  add_library(tree, "usr/lib64", "libcuda.so", "535.216.03", library_of(kX86_64));
  tree.file("etc/ld.so.cache", fake_ld_cache({{"libcuda.so.1", "/opt/driver/libcuda.so.1"},
                                              {"libnvidia-ml.so.1", "/opt/driver/not-there.so"},
                                              {"libc.so.6", "/lib/libc.so.6"}}));
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_EQ(files->version, "390.30");
  EXPECT_THAT(destinations(*files), ElementsAre("lib64/libcuda.so.390.30"));
  EXPECT_THAT(files->skipped, ElementsAre(HasSubstr("/opt/driver/not-there.so: ")));
}

TEST(FindTest, DamagedLoaderCacheIsSaidAndNotNeeded) {
  FakeTree tree;
  add_library(tree, "usr/lib64", "libcuda.so", "390.30", library_of(kX86_64));
  tree.file("etc/ld.so.cache", "garbage");
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(files->skipped, ElementsAre(HasSubstr("/etc/ld.so.cache: the loader cache is damaged")));
}

TEST(FindTest, LinksAreFollowedInsideTheRoot) {
  FakeTree tree;
  tree.file("usr/lib64/nvidia/libcuda.so.390.30", fake_elf(library_of(kX86_64)));
  tree.link("etc/alternatives/libcuda.so.1", "/usr/lib64/nvidia/libcuda.so.390.30");
  tree.link("usr/lib64/libcuda.so.1", "/etc/alternatives/libcuda.so.1");
  tree.link("usr/lib64/libnvidia-ml.so.1", "../../../../../../etc/hostname");
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(files->files,
              ElementsAre(DriverFile{"/usr/lib64/nvidia/libcuda.so.390.30", "lib64/libcuda.so.390.30"}));
  EXPECT_NE(link_at(*files, "lib64/libcuda.so.1"), nullptr);
}

TEST(FindTest, BothClassesGoToTheirFolders) {
  FakeTree tree;
  add_library(tree, "usr/lib/x86_64-linux-gnu", "libcuda.so", "390.30", library_of(kX86_64));
  add_library(tree, "usr/lib/i386-linux-gnu", "libcuda.so", "390.30", library_of(kI386, ElfClass::k32));
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(destinations(*files), ElementsAre("lib/libcuda.so.390.30", "lib64/libcuda.so.390.30"));
}

TEST(FindTest, StaleLibrariesOfAnotherDriverAreLeftOut) {
  FakeTree tree;
  add_library(tree, "usr/lib64", "libcuda.so", "535.216.03", library_of(kX86_64));
  add_library(tree, "usr/lib64", "libnvidia-encode.so", "390.30", library_of(kX86_64));
  tree.file("usr/lib64/libnvidia-nscq.so.2.0", fake_elf(library_of(kX86_64)));  // an interface's version
  const auto files = find({.root = tree.root(), .version = "535.216.03"});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(destinations(*files),
              ElementsAre("lib64/libcuda.so.535.216.03", "lib64/libnvidia-nscq.so.2.0"));
  EXPECT_THAT(files->skipped,
              Contains("/usr/lib64/libnvidia-encode.so.390.30: it belongs to driver 390.30, not 535.216.03"));
}

TEST(FindTest, OnlyAnotherDriverIsAnErrorWithBothVersions) {
  FakeTree tree;
  add_library(tree, "usr/lib64", "libcuda.so", "535.216.03", library_of(kX86_64));
  const auto files = find({.root = tree.root(), .version = "390.30"});
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(files.error().message, HasSubstr("is driver 535.216.03, but the kernel runs driver 390.30"));
}

TEST(FindTest, RootWithoutADriverIsAnError) {
  FakeTree tree;
  tree.file("usr/lib64/libcuda.so.1", "no library")
      .file("usr/lib64/libcudart.so.9", fake_elf(library_of(kX86_64)));
  const auto files = find({.root = tree.root()});
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(files.error().hint, HasSubstr("--driver-root"));
  EXPECT_EQ(find({.root = tree / "missing"}).error().kind, ErrorKind::kNotFound);
}

TEST(FindTest, LibraryThatIsAFifoOrAFolderIsLeftOut) {
  FakeTree tree;
  add_library(tree, "usr/lib64", "libcuda.so", "390.30", library_of(kX86_64));
  ASSERT_EQ(::mkfifo((tree / "usr/lib64/libnvidia-ml.so.1").c_str(), 0600), 0);
  tree.folder("usr/lib64/libnvidia-cfg.so.1");
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(destinations(*files), ElementsAre("lib64/libcuda.so.390.30"));
  EXPECT_EQ(files->skipped.size(), 2U);
}

TEST(FindTest, OpenGlOfOthersIsLeftOut) {
  FakeTree tree;
  add_library(tree, "usr/lib64", "libcuda.so", "390.30", library_of(kX86_64));
  auto nvidia = library_of(kX86_64);
  nvidia.needed = {"libnvidia-glcore.so.390.30"};
  auto mesa = library_of(kX86_64);
  mesa.needed = {"libGLdispatch.so.0", "libglapi.so"};
  tree.file("usr/lib64/libGL.so.390.30", fake_elf(nvidia)).file("usr/lib64/libEGL.so.1.7.0", fake_elf(mesa));
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(destinations(*files), ElementsAre("lib64/libGL.so.390.30", "lib64/libcuda.so.390.30"));
}

TEST(FindTest, ThreadLocalStorageFollowsTheAbiNoteIfThereIsOne) {
  FakeTree tree;
  add_library(tree, "usr/lib64", "libcuda.so", "390.30", library_of(kX86_64));
  auto old_threads = library_of(kX86_64);
  old_threads.abi = AbiVersion{2, 2, 5};
  auto threads = library_of(kX86_64);
  threads.abi = AbiVersion{2, 3, 99};
  tree.file("usr/lib64/libnvidia-tls.so.390.30", fake_elf(old_threads));
  tree.file("usr/lib64/tls/libnvidia-tls.so.390.30", fake_elf(threads));
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(files->files, Contains(DriverFile{"/usr/lib64/tls/libnvidia-tls.so.390.30",
                                                "lib64/libnvidia-tls.so.390.30"}));

  FakeTree modern;
  add_library(modern, "usr/lib64", "libcuda.so", "570.10", library_of(kX86_64));
  modern.file("usr/lib64/libnvidia-tls.so.570.10", fake_elf(library_of(kX86_64)));
  EXPECT_THAT(destinations(*find({.root = modern.root()})), Contains("lib64/libnvidia-tls.so.570.10"));
}

TEST(FindTest, NamesThatTheLoaderNeedsAreLinked) {
  FakeTree tree;
  tree.file("usr/lib64/libcuda.so.390.30", fake_elf(library_of(kX86_64, ElfClass::k64, "libcuda.so.1")));
  tree.file("usr/lib64/libGLX_nvidia.so.390.30", fake_elf(library_of(kX86_64)));
  tree.link("usr/lib64/libGLX_nvidia.so.0", "libGLX_nvidia.so.390.30");
  const auto files = find({.root = tree.root()});
  ASSERT_TRUE(files) << to_string(files.error());
  ASSERT_NE(link_at(*files, "lib64/libcuda.so.1"), nullptr);  // from its SONAME
  const auto* indirect = link_at(*files, "lib64/libGLX_indirect.so.0");
  ASSERT_NE(indirect, nullptr);
  EXPECT_EQ(indirect->target, "libGLX_nvidia.so.390.30");
}

TEST(FindTest, ProgramsAndDataComeAlong) {
  FakeTree tree;
  add_library(tree, "usr/lib64", "libcuda.so", "390.30", library_of(kX86_64));
  tree.file("usr/lib/nvidia/current/nvidia-smi", "program").file("share/drover-sim/profile.yaml", "name: x");
  tree.link("usr/bin/nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi");
  tree.file("usr/sbin/nvidia-cuda-mps-server", "program").file("usr/bin/nvidia-settings", "not needed");
  const SharedFile live{"/state/live", "share/drover-sim/live"};
  const auto files =
      find({.root = tree.root(), .data_files = {"share/drover-sim/profile.yaml"}, .shared_files = {live}});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(files->files,
              ElementsAre(DriverFile{"/usr/sbin/nvidia-cuda-mps-server", "bin/nvidia-cuda-mps-server", true},
                          DriverFile{"/usr/lib/nvidia/current/nvidia-smi", "bin/nvidia-smi", true},
                          DriverFile{"/usr/lib64/libcuda.so.390.30", "lib64/libcuda.so.390.30"},
                          DriverFile{"/share/drover-sim/profile.yaml", "share/drover-sim/profile.yaml"}));
  EXPECT_THAT(files->shared, ElementsAre(live));
  EXPECT_FALSE(find({.root = tree.root(), .data_files = {"share/missing"}}));
}

TEST(FindTest, FindsTheVendorsRealFiles) {
  const char* root = std::getenv("DROVER_NVIDIA_ROOT");
  if (root == nullptr) GTEST_SKIP() << "set DROVER_NVIDIA_ROOT to a folder with NVIDIA's packages unpacked";
  const auto files = find({.root = root});
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(destinations(*files), Contains("lib64/libcuda.so." + files->version));
  EXPECT_THAT(destinations(*files), Contains("lib64/libnvidia-ml.so." + files->version));
  EXPECT_NE(link_at(*files, "lib64/libcuda.so.1"), nullptr);
  EXPECT_NE(link_at(*files, "lib64/libnvidia-ml.so.1"), nullptr);
  EXPECT_THAT(files->skipped, IsEmpty());
}

TEST(NamesTest, VersionIsToldFromInterfaceNumbers) {
  EXPECT_EQ(version_in("libcuda.so.390.30"), "390.30");
  EXPECT_EQ(version_in("libcuda.so.535.216.03"), "535.216.03");
  for (const auto* name :
       {"libcuda.so", "libcuda.so.1", "libnvidia-egl-wayland.so.1.1.11", "libcuda.so.390", "390.30"})
    EXPECT_EQ(version_in(name), "") << name;
}

TEST(NamesTest, LibrariesAreToldByWholeNames) {
  EXPECT_TRUE(is_driver_library("libcuda.so.1"));
  EXPECT_TRUE(is_driver_library("libcuda.so"));
  EXPECT_FALSE(is_driver_library("libcuda.source"));
  EXPECT_FALSE(is_driver_library("libcudart.so.12"));
}

}  // namespace
}  // namespace drover::driver
