#include "driver/host_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "base/fake_tree.h"
#include "driver/fake_elf.h"

namespace drover::driver {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr const char* kVersion = "535.216.03";
constexpr const char* kLib = "usr/lib/x86_64-linux-gnu/";

void add_library(FakeTree& tree, const std::string& path, const std::string& soname,
                 std::uint16_t machine = kX86_64, ElfClass elf_class = ElfClass::k64) {
  tree.file(path, fake_elf(library_of(machine, elf_class, soname)));
}

std::vector<std::string> destinations_of(const HostFiles& files) {
  std::vector<std::string> all;
  for (const auto& file : files.files) all.push_back(file.destination);
  return all;
}

class HostFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    versioned("libcuda.so", "libcuda.so.1");
    versioned("libnvidia-ml.so", "libnvidia-ml.so.1");
  }
  void versioned(const std::string& name, const std::string& soname) {
    add_library(tree_, kLib + name + "." + kVersion, soname);
  }
  HostFiles found() {
    auto files = find_host_files({.root = tree_.root(), .version = kVersion, .kernel_release = "6.1.0"});
    EXPECT_TRUE(files) << to_string(files.error());
    return files.value_or(HostFiles{});
  }
  FakeTree tree_;
};

TEST_F(HostFilesTest, EveryLibraryOfTheVersionIsThereWhateverItsName) {
  versioned("libnvidia-of-tomorrow.so", "libnvidia-of-tomorrow.so.1");
  add_library(tree_, std::string(kLib) + "vdpau/libvdpau_nvidia.so." + kVersion, "libvdpau_nvidia.so.1");
  add_library(tree_, std::string(kLib) + "libnvidia-egl-gbm.so.1.1.0", "libnvidia-egl-gbm.so.1");
  add_library(tree_, std::string(kLib) + "libnvidia-nvvm70.so.4", "libnvidia-nvvm70.so.4");
  add_library(tree_, std::string(kLib) + "libcuda.so.390.30", "libcuda.so.1");
  add_library(tree_, std::string(kLib) + "libz.so.1.2.3", "libz.so.1");
  add_library(tree_, std::string("usr/lib/i386-linux-gnu/libcuda.so.") + kVersion, "libcuda.so.1", kI386,
              ElfClass::k32);
  add_library(tree_, std::string("usr/lib/aarch64-linux-gnu/libcuda.so.") + kVersion, "libcuda.so.1",
              kAarch64);
  const auto files = found();
  const auto at = [](const std::string& name) { return std::string("/") + kLib + name; };
  EXPECT_THAT(destinations_of(files),
              UnorderedElementsAre(at("libcuda.so.535.216.03"), at("libnvidia-ml.so.535.216.03"),
                                   at("libnvidia-of-tomorrow.so.535.216.03"),
                                   at("vdpau/libvdpau_nvidia.so.535.216.03"),
                                   at("libnvidia-egl-gbm.so.1.1.0"), at("libnvidia-nvvm70.so.4")));
  EXPECT_EQ(files.files[0].source, tree_.root() + files.files[0].destination);
}

TEST_F(HostFilesTest, LinksAreThoseThatProgramsLookFor) {
  versioned("libGLX_nvidia.so", "libGLX_nvidia.so.0");
  versioned("libnvidia-allocator.so", "libnvidia-allocator.so.1");
  const auto files = found();
  const auto link = [](const std::string& name, const std::string& target) {
    return HostLink{std::string("/") + kLib + name, target};
  };
  EXPECT_THAT(
      files.links,
      UnorderedElementsAre(link("libcuda.so", "libcuda.so.1"), link("libcuda.so.1", "libcuda.so.535.216.03"),
                           link("libnvidia-ml.so.1", "libnvidia-ml.so.535.216.03"),
                           link("libGLX_nvidia.so.0", "libGLX_nvidia.so.535.216.03"),
                           link("libGLX_indirect.so.0", "libGLX_nvidia.so.535.216.03"),
                           link("libnvidia-allocator.so.1", "libnvidia-allocator.so.535.216.03"),
                           link("gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1")));
  EXPECT_THAT(files.libraries, IsSupersetOf({std::string("/") + kLib + "libcuda.so.1",
                                             std::string("/") + kLib + "libcuda.so"}));
  EXPECT_THAT(files.libraries, Not(Contains(std::string("/") + kLib + "gbm/nvidia-drm_gbm.so")));
}

TEST_F(HostFilesTest, NamesForTheLinkerAreThereWhereTheHostHasThem) {
  versioned("libnvcuvid.so", "libnvcuvid.so.1");
  versioned("libnvidia-encode.so", "libnvidia-encode.so.1");
  tree_.link(std::string(kLib) + "libnvcuvid.so", "libnvcuvid.so.1")
      .file(std::string(kLib) + "libnvidia-encode.so", "of somebody else");
  const auto links = found().links;
  EXPECT_THAT(links, Contains(HostLink{std::string("/") + kLib + "libnvcuvid.so", "libnvcuvid.so.1"}));
  EXPECT_THAT(
      links,
      Not(Contains(::testing::Field(&HostLink::path, std::string("/") + kLib + "libnvidia-encode.so"))));
}

TEST_F(HostFilesTest, ProgramsFirmwareAndDescriptionsKeepTheirPlaces) {
  tree_.file("usr/lib/nvidia/current/nvidia-smi", "p")
      .link("usr/bin/nvidia-smi", "/etc/alternatives/nvidia-smi");
  tree_.link("etc/alternatives/nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi");
  tree_.file("usr/lib/nvidia/current/nvidia-debugdump", "p");
  tree_.file("lib/firmware/nvidia/535.216.03/gsp_tu10x.bin", "f")
      .file("lib/firmware/nvidia/390.30/gsp.bin", "f");
  tree_.file("usr/share/vulkan/icd.d/nvidia_icd.json", "{}")
      .file("usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}");
  const auto files = found();
  const auto has = [&](const std::string& source, const std::string& destination) {
    EXPECT_THAT(files.files, Contains(HostFile{tree_.root() + source, destination, false}));
  };
  has("/usr/lib/nvidia/current/nvidia-smi", "/usr/bin/nvidia-smi");
  has("/usr/lib/nvidia/current/nvidia-debugdump", "/usr/bin/nvidia-debugdump");
  has("/lib/firmware/nvidia/535.216.03/gsp_tu10x.bin", "/lib/firmware/nvidia/535.216.03/gsp_tu10x.bin");
  has("/usr/share/vulkan/icd.d/nvidia_icd.json", "/etc/vulkan/icd.d/nvidia_icd.json");
  has("/usr/share/glvnd/egl_vendor.d/10_nvidia.json", "/usr/share/glvnd/egl_vendor.d/10_nvidia.json");
  EXPECT_EQ(files.files.size(), 7U);
}

TEST_F(HostFilesTest, AContainerNamesFilesByThePathsOfItsHost) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  tree_.folder("run/nvidia-persistenced");
  sockaddr_un address{AF_UNIX, ""};
  (tree_ / "run/nvidia-persistenced/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const auto library = std::string("/") + kLib + "libcuda.so." + kVersion;
  for (const auto& [host, prefix] : {std::pair("/", ""), {"/run/nvidia/driver/", "/run/nvidia/driver"}}) {
    const auto files = find_host_files({.root = tree_.root(), .host_root = host}).value().files;
    EXPECT_THAT(files, Contains(HostFile{prefix + library, library, false}));
    EXPECT_THAT(files, Contains(HostFile{std::string(prefix) + "/run/nvidia-persistenced/socket",
                                         "/run/nvidia-persistenced/socket", true}));
  }
}

TEST_F(HostFilesTest, FirmwareIsFoundWhereTheKernelWasToldToLook) {
  tree_.file("opt/firmware/nvidia/535.216.03/gsp_ga10x.bin", "f");
  const auto destination = "/opt/firmware/nvidia/535.216.03/gsp_ga10x.bin";
  const auto is_there = [&](const std::string& folder) {
    const auto files = find_host_files({.root = tree_.root(), .firmware_folder = folder}).value().files;
    return std::ranges::any_of(files, [&](const HostFile& file) { return file.destination == destination; });
  };
  EXPECT_TRUE(is_there("/opt/firmware"));
  EXPECT_FALSE(is_there(""));
}

TEST_F(HostFilesTest, NothingOutsideOfTheRootIsTaken) {
  FakeTree outside;
  outside.file("nvidia-smi", "the host's");
  tree_.link("usr/bin/nvidia-smi", outside / "nvidia-smi");
  EXPECT_THAT(destinations_of(found()), Not(Contains("/usr/bin/nvidia-smi")));
}

TEST_F(HostFilesTest, FilesThatContainersWriteAreNotOfTheRoot) {
  const auto files = find_host_files({.root = tree_.root(),
                                      .host_root = "/on/host",
                                      .shared_files = {{"/state/live", "share/drover-sim/live"}}});
  for (const std::string folder : {"/", "/usr/"})
    EXPECT_THAT(files.value().files, Contains(HostFile{.source = "/state/live",
                                                       .destination = folder + "share/drover-sim/live",
                                                       .writable = true}));
}

TEST_F(HostFilesTest, AnotherVersionIsNoDriver) {
  EXPECT_EQ(find_host_files({.root = tree_.root(), .version = "550.54"}).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace drover::driver
