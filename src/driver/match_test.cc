#include "driver/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

gpu::Device card(std::string model, gpu::ComputeCapability capability, std::string brand) {
  gpu::Device device;
  device.uuid = "GPU-1";
  device.model = std::move(model);
  device.compute_capability = capability;
  device.brand = std::move(brand);
  return device;
}

gpu::MachineFacts k80() {
  return {"396.44", "9.2", {card("Tesla K80", {3, 7}, "tesla")}};
}
gpu::MachineFacts v100(const std::string& driver, const std::string& cuda) {
  return {driver, cuda, {card("Tesla V100", {7, 0}, "tesla")}};
}

ImageFacts built_for(const std::string& cuda) {
  return {.environment = {{"PATH", "/bin"}, {"CUDA_VERSION", cuda}}};
}

std::vector<CarriedLibrary> libcuda(const std::string& folder, const std::string& version) {
  return {{folder + "/libcuda.so." + version, version}};
}

/// Why it is refused, with the way out; "" when it is not.
std::string refusal(const gpu::MachineFacts& machine, const ImageFacts& image) {
  const auto matched = match(machine, image);
  if (matched) return "";
  EXPECT_FALSE(matched.error().hint.empty());
  return to_string(matched.error());
}

TEST(Match, AnImageThatSaysNothingFitsEverywhere) {
  EXPECT_EQ(refusal(k80(), {}), "");
  EXPECT_EQ(refusal({}, {}), "");
}

TEST(Match, AnImageOfANewerCudaIsRefusedWithBothVersionsAndTheWayOut) {
  const auto why = refusal(k80(), built_for("10.0.130"));
  EXPECT_THAT(why, HasSubstr("CUDA 10.0.130"));
  EXPECT_THAT(why, HasSubstr("driver 396.44"));
  EXPECT_THAT(why, HasSubstr("CUDA 9.2 at most"));
  EXPECT_THAT(why, HasSubstr("driver 410.48 or newer"));
  EXPECT_THAT(why, HasSubstr("image for CUDA 9.2 or older"));
  EXPECT_EQ(refusal(k80(), built_for("9.2.148")), "");
  EXPECT_EQ(refusal(k80(), built_for("8.0.61")), "");
}

TEST(Match, MinorVersionsOfOneCudaAreCompatible) {
  EXPECT_EQ(refusal(v100("535.129.03", "12.2"), built_for("12.9.1")), "");
  EXPECT_THAT(refusal(v100("510.47.03", "11.6"), built_for("12.0.0")),
              HasSubstr("driver 525.60.13 or newer"));
  EXPECT_EQ(refusal(v100("510.47.03", ""), built_for("11.8.0")), "")
      << "the table knows what a driver serves";
}

TEST(Match, WhatTheImageRequiresDecidesOverItsCuda) {
  auto image = built_for("12.2.0");
  image.environment.emplace_back("NVIDIA_REQUIRE_CUDA", "cuda>=12.2 brand=tesla,driver>=470,driver<471");
  EXPECT_EQ(refusal(v100("470.256.02", "11.4"), image), "");
  EXPECT_EQ(refusal(v100("535.129.03", "12.2"), image), "");
  const auto why = refusal(v100("460.32.03", "11.2"), image);
  EXPECT_THAT(why, HasSubstr("NVIDIA_REQUIRE_CUDA"));
  EXPECT_THAT(why, HasSubstr("'cuda>=12.2 brand=tesla"));
  EXPECT_THAT(why, HasSubstr("driver 460.32.03, which serves CUDA 11.2 at most"));
  EXPECT_THAT(why, HasSubstr("NVIDIA_DISABLE_REQUIRE=1"));
}

TEST(Match, EveryConditionMustHoldForEveryGpu) {
  ImageFacts image;
  image.environment = {{"NVIDIA_REQUIRE_ARCH", "arch>=5.2"}, {"NVIDIA_REQUIRE_DRIVER", "driver>=390"}};
  EXPECT_THAT(refusal(k80(), image), HasSubstr("GPU 0 (Tesla K80, compute capability 3.7, brand tesla)"));
  auto both = k80();
  both.devices.insert(both.devices.begin(), card("Tesla M60", {5, 2}, "tesla"));
  EXPECT_THAT(refusal(both, image), HasSubstr("Tesla K80"));
  both.devices.pop_back();
  EXPECT_EQ(refusal(both, image), "");
}

TEST(Match, ConditionsThatAreNotUnderstoodAreTold) {
  ImageFacts image;
  image.environment = {{"NVIDIA_REQUIRE_CUDA", "cuda>=9.0 gpus>2"}};
  const auto matched = match(k80(), image);
  ASSERT_FALSE(matched);
  EXPECT_EQ(matched.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(matched.error().message, HasSubstr("NVIDIA_REQUIRE_CUDA: 'gpus>2' is not understood"));
  EXPECT_THAT(refusal(k80(), built_for("nine")), HasSubstr("CUDA_VERSION is 'nine'"));
  image.environment = {{"NVIDIA_REQUIRE_JETPACK", "csv-mounts=all"}};
  EXPECT_EQ(refusal(k80(), image), "") << "that is about other machines";
}

TEST(Match, ConditionsCanBeSwitchedOff) {
  auto image = built_for("13.0.0");
  image.environment.emplace_back("NVIDIA_REQUIRE_CUDA", "nonsense");
  image.environment.emplace_back("NVIDIA_DISABLE_REQUIRE", "false");
  EXPECT_NE(refusal(k80(), image), "");
  image.environment.emplace_back("NVIDIA_DISABLE_REQUIRE", "1");
  EXPECT_EQ(refusal(k80(), image), "");
}

TEST(Match, ACudaThatKnowsTheGpuNoMoreIsRefused) {
  const auto why = refusal(v100("580.65.06", "13.0"), built_for("13.0.1"));
  EXPECT_THAT(why, HasSubstr("compute capability 7.5 and newer"));
  EXPECT_THAT(why, HasSubstr("Tesla V100, compute capability 7.0"));
  EXPECT_THAT(why, HasSubstr("--gpu-cc 7.5"));
  EXPECT_EQ(refusal(v100("580.65.06", "13.0"), built_for("12.9.1")), "");
}

TEST(Match, ADriverOfAnotherVersionInTheImageIsRefused) {
  ImageFacts image;
  image.carried = libcuda("/usr/lib64", "390.30");
  const auto why = refusal(k80(), image);
  EXPECT_THAT(why, HasSubstr("user-land driver 390.30 ('/usr/lib64/libcuda.so.390.30')"));
  EXPECT_THAT(why, HasSubstr("kernel runs driver 396.44"));
  EXPECT_THAT(why, Not(HasSubstr("--driver none")));
  image.carried = libcuda("/usr/lib64", "396.44");
  EXPECT_EQ(refusal(k80(), image), "");
  image.carried.push_back({"/opt/libnvidia-ml.so.410.48", "410.48"});
  EXPECT_THAT(refusal(k80(), image), HasSubstr("410.48")) << "each of them must be the kernel's";
  image.environment = {{"NVIDIA_DISABLE_REQUIRE", "true"}};
  EXPECT_THAT(refusal(k80(), image), HasSubstr("410.48")) << "no condition, but a fact";
}

TEST(Match, AnImmutableImageMustCarryTheKernelsDriver) {
  ImageFacts image{.immutable = true};
  const auto missing = refusal(k80(), image);
  EXPECT_THAT(missing, HasSubstr("carries no user-land driver"));
  EXPECT_THAT(missing, HasSubstr("driver 396.44"));
  EXPECT_THAT(missing, HasSubstr("leave --driver none out"));
  image.carried = libcuda("/usr/lib64", "390.30");
  EXPECT_THAT(refusal(k80(), image), HasSubstr("390.30"));
  EXPECT_THAT(refusal(k80(), image), HasSubstr("396.44"));
  image.carried = libcuda("/usr/lib64", "396.44");
  EXPECT_EQ(refusal(k80(), image), "");
  EXPECT_THAT(refusal({"", "", {}}, image), HasSubstr("does not tell the version of its driver"));
}

TEST(Match, ForwardCompatibilityServesANewerCudaOnDataCenterCards) {
  auto image = built_for("12.2.0");
  image.compat = libcuda("/usr/local/cuda-12.2/compat", "535.54.03");
  EXPECT_EQ(refusal(v100("470.256.02", "11.4"), image), "");
  image.environment.emplace_back("NVIDIA_REQUIRE_CUDA", "cuda>=12.2");
  EXPECT_EQ(refusal(v100("470.256.02", "11.4"), image), "");
  image.environment.pop_back();

  gpu::MachineFacts desktop{"470.256.02", "11.4", {card("NVIDIA GeForce RTX 3090", {8, 6}, "geforce")}};
  EXPECT_THAT(refusal(desktop, image), HasSubstr("package of driver 535.54.03 does not work here"));
  EXPECT_THAT(refusal(desktop, image), Not(HasSubstr("add CUDA's forward")));
  EXPECT_NE(refusal(v100("367.48", "8.0"), image), "") << "too old a kernel";
  image.environment = {{"CUDA_VERSION", "13.0.0"}};
  EXPECT_THAT(refusal(v100("470.256.02", "11.4"), image),
              HasSubstr("forward compatibility package is of driver 535"));
}

TEST(Match, AnOlderCompatibilityPackageIsLeftOut) {
  const auto compat = libcuda("/usr/local/cuda-11.4/compat", "470.57.02");
  EXPECT_TRUE(uses_compat(v100("460.32.03", "11.2"), compat));
  EXPECT_FALSE(uses_compat(v100("470.256.02", "11.4"), compat));
  EXPECT_FALSE(uses_compat(v100("535.129.03", "12.2"), compat));
  EXPECT_FALSE(uses_compat(v100("535.129.03", "12.2"), {}));
  auto image = built_for("11.4.0");
  image.compat = compat;
  EXPECT_EQ(refusal(v100("535.129.03", "12.2"), image), "");
}

}  // namespace
}  // namespace drover::driver
