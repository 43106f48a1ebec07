#include "gpu/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_tree.h"

namespace drover::gpu {
namespace {

using testing::HasSubstr;

std::string fake(const std::string& way) {
  return std::string(FAKE_NVML_FOLDER) + "/libfake_nvml_" + way + ".so";
}

Error error_of(const std::string& library) {
  const auto nvml = Nvml::load(library);
  return nvml ? Error{ErrorKind::kInternal, "it loaded"} : nvml.error();
}

TEST(NvmlTest, LoadsAndTellsTheVersion) {
  const auto nvml = Nvml::load(fake("good"));
  ASSERT_TRUE(nvml) << to_string(nvml.error());
  EXPECT_EQ(nvml->driver_version(), "340.29");
  EXPECT_EQ(nvml->error_text(NVML_ERROR_GPU_IS_LOST), "GPU is lost");
  EXPECT_EQ(nvml->functions().uuid, nullptr);
}

TEST(NvmlTest, TakesFirstRevisionsOfFunctions) {
  EXPECT_TRUE(Nvml::load(fake("unsuffixed")));
}

TEST(NvmlTest, MissingLibraryIsSaid) {
  const auto error = error_of("libnot-there.so.1");
  EXPECT_EQ(error.kind, ErrorKind::kNotFound);
  EXPECT_EQ(error.message, "NVIDIA's management library 'libnot-there.so.1' is not on this machine");
  EXPECT_THAT(error.hint, HasSubstr("--simulate"));
}

TEST(NvmlTest, FileThatIsNoLibraryIsSaid) {
  FakeTree tree;
  tree.file("libnvidia-ml.so.1", "not a library");
  const auto error = error_of(tree / "libnvidia-ml.so.1");
  EXPECT_EQ(error.kind, ErrorKind::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("Failed to load"));
}

TEST(NvmlTest, MissingEssentialFunctionIsNamed) {
  const auto error = error_of(fake("no_count"));
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("has no function 'nvmlDeviceGetCount'"));
}

TEST(NvmlTest, FailingStartSaysWhy) {
  const auto error = error_of(fake("init_fails"));
  EXPECT_EQ(error.kind, ErrorKind::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("does not start: Driver Not Loaded"));
}

TEST(NvmlTest, OldDriverIsRefusedWithBothVersions) {
  const auto error = error_of(fake("old_driver"));
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_EQ(error.message, "NVIDIA driver 331.62 is too old: 340.29 is the oldest that works");
}

TEST(NvmlTest, ShutsDownExactlyOnce) {
  void* library = ::dlopen(fake("good").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto open_sessions = reinterpret_cast<int (*)()>(::dlsym(library, "fake_open_sessions"));
  {
    auto first = Nvml::load(fake("good"));
    EXPECT_EQ(open_sessions(), 1);
    auto second = Nvml::load(fake("good"));
    EXPECT_EQ(open_sessions(), 2);
    const auto moved = std::move(*first);
    *second = Nvml::load(fake("good")).value();
    EXPECT_EQ(open_sessions(), 2);
  }
  EXPECT_EQ(open_sessions(), 0);
  ::dlclose(library);
}

TEST(NvmlTest, VersionsCompareAsNumbers) {
  EXPECT_TRUE(older_driver("331.62", "340.29"));
  EXPECT_TRUE(older_driver("340.9", "340.29"));
  EXPECT_TRUE(older_driver("340", "340.29"));
  EXPECT_FALSE(older_driver("340.29", "340.29"));
  EXPECT_FALSE(older_driver("340.29.01", "340.29"));
  EXPECT_FALSE(older_driver("1000.1", "340.29"));
}

}  // namespace
}  // namespace drover::gpu
