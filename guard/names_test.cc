// What programs get when they ask for functions by name: the driver's answer, and ours only where ours stands
// before that very function.

#include <set>

#include "guard/testing/container.h"

namespace drover::guard {
namespace {

/// Every name that simulated CUDA knows.
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(SIM_NAMES)) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("cu")) names.push_back(line.substr(0, line.find(' ')));
  }
  return names;
}

struct Answer {
  CUresult result = CUDA_SUCCESS;
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = -1;
};

Answer ask(const Functions& cuda, const std::string& name, int version, cuuint64_t flags) {
  Answer answer;
  answer.result =
      CALL(cuda, cuGetProcAddress_v2)(name.c_str(), &answer.function, version, flags, &answer.status);
  return answer;
}

/// What ours may answer where the driver's answer is `function`: its own under every symbol that means that.
std::set<void*> meant(const Functions& guard, const Functions& driver, const std::string& name,
                      void* function) {
  std::set<void*> all;
  for (const char* suffix :
       {"", "_v2", "_v3", "_v4", "_ptds", "_ptsz", "_v2_ptds", "_v2_ptsz", "WithFlags"}) {
    const auto symbol = name + suffix;
    if (driver.find(symbol.c_str()) == function) all.insert(guard.find(symbol.c_str()));
  }
  return all;
}

class GuardNamesTest : public Container {};

TEST_F(GuardNamesTest, EveryNameOfEveryVersionAndStreamIsTheDriversRevision) {
  limit({{0, kGib}});
  run([&](Client& client) {
    const Functions driver(folder_ / "libdrover-driver-cuda.so.1");
    ASSERT_EQ(CALL(client.cuda, cuInit)(0), CUDA_SUCCESS);
    int ours = 0, all = 0;
    for (const auto& name : all_names())
      for (const int version :
           {2000, 3020, 4000, 7000, 10000, 11000, 11020, 11040, 12000, 12050, 12090, 13050})
        for (const cuuint64_t flags : {0, 1, 2}) {
          SCOPED_TRACE(name + " " + std::to_string(version) + " " + std::to_string(flags));
          const auto expected = ask(driver, name, version, flags),
                     actual = ask(client.cuda, name, version, flags);
          ++all;
          ASSERT_EQ(actual.result, expected.result);
          ASSERT_EQ(actual.status, expected.status);
          if (expected.function == nullptr) {
            ASSERT_EQ(actual.function, nullptr);
            continue;
          }
          ASSERT_TRUE(meant(client.cuda, driver, name, expected.function).contains(actual.function));
          ours += actual.function != expected.function;
        }
    EXPECT_GT(all, 10'000);
    EXPECT_GT(ours, 1000);
  });
}

TEST_F(GuardNamesTest, RevisionsOfAllocationAreNotMixedUp) {
  run([&](Client& client) {
    ASSERT_EQ(CALL(client.cuda, cuInit)(0), CUDA_SUCCESS);
    const auto expect = [&](const char* name, int version, cuuint64_t flags, const char* symbol) {
      EXPECT_EQ(ask(client.cuda, name, version, flags).function, client.cuda.get(symbol)) << symbol;
    };
    expect("cuMemAlloc", 2000, 0, "cuMemAlloc");
    expect("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
    expect("cuMemAlloc", 12000, 2, "cuMemAlloc_v2");
    expect("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
    expect("cuMemAllocAsync", 12000, 0, "cuMemAllocAsync");
    expect("cuMemAllocAsync", 12000, 2, "cuMemAllocAsync_ptsz");
    expect("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz");
    expect("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    expect("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
  });
}

TEST_F(GuardNamesTest, WhatIsNotCoveredIsTheDriversOwn) {
  run([&](Client& client) {
    const Functions driver(folder_ / "libdrover-driver-cuda.so.1");
    for (const char* name :
         {"cuLaunchHostFunc", "cuMemcpyHtoD_v2", "cuDriverGetVersion", "cuGetExportTable", "cuInit"})
      EXPECT_EQ(client.cuda.get(name), driver.get(name)) << name;
    EXPECT_NE(client.cuda.get("cuMemAlloc_v2"), driver.get("cuMemAlloc_v2"));
    EXPECT_NE(client.nvml.get("nvmlDeviceGetMemoryInfo"), client.driver_nvml.get("nvmlDeviceGetMemoryInfo"));
    EXPECT_EQ(client.nvml.get("nvmlDeviceGetName"), client.driver_nvml.get("nvmlDeviceGetName"));
    // By its name it is ours, although the driver's has the same.
    for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
      void* const again = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD);
      ASSERT_NE(again, nullptr) << name;
      const char* const symbol = name[3] == 'c' ? "cuMemAlloc_v2" : "nvmlDeviceGetMemoryInfo";
      EXPECT_EQ(::dlsym(again, symbol), (name[3] == 'c' ? client.cuda : client.nvml).get(symbol));
    }
  });
}

// One build is for the oldest image, and for programs that bring a C++ run time of their own.
TEST(GuardLibrariesTest, NeedNothingButAnOldCLibrary) {
  for (const std::filesystem::path file : {GUARD_CUDA, GUARD_NVML}) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const std::string version = "GLIBC_2.";
    int found = 0;
    for (auto at = bytes.find(version); at != std::string::npos; at = bytes.find(version, at + 1), ++found)
      EXPECT_LE(std::atoi(bytes.c_str() + at + version.size()), 17) << bytes.c_str() + at;
    EXPECT_GT(found, 0);
    for (const char* other : {"libstdc++", "GLIBCXX", "libgcc_s", "__asan", "__ubsan"})
      EXPECT_EQ(bytes.find(other), std::string::npos) << other;
  }
}

}  // namespace
}  // namespace drover::guard
