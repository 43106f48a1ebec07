#include "image/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::image {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kManifest = "application/vnd.oci.image.manifest.v1+json";

Descriptor entry(std::map<std::string, std::string> annotations,
                 std::optional<Platform> platform = std::nullopt) {
  Descriptor descriptor;
  descriptor.media_type = kManifest;
  descriptor.digest = "sha256:" + std::string(64, 'a');
  descriptor.annotations = std::move(annotations);
  descriptor.platform = std::move(platform);
  return descriptor;
}

std::string mistakes(std::string_view text) {
  const auto parsed = parse_variant_list(text, "'list.yaml'");
  return parsed ? "" : to_string(parsed.error());
}

TEST(VariantList, NamesImagesAndWhatTheyNeed) {
  const auto variants = parse_variant_list(R"(
variants:
  - {name: fast, image: "oci:/i:fast", cpu: [skylake-avx512, znver4], driver: ">=396", cuda: 9.2}
  - {image: "oci:/i:maxwell", compute_capability: [5.2, "6.0"], driver: 396}
  - {image: tool}
)",
                                           "'list.yaml'")
                            .value();
  ASSERT_EQ(variants.size(), 3U);
  EXPECT_EQ(variants[0].needs.name, "fast");
  EXPECT_EQ(variants[0].reference, "oci:/i:fast");
  EXPECT_EQ(gpu::describe(variants[0].needs), "driver >=396, CUDA 9.2, CPU skylake-avx512 or znver4");
  EXPECT_EQ(variants[1].needs.name, "oci:/i:maxwell");
  EXPECT_EQ(gpu::describe(variants[1].needs), "compute capability 5.2, 6.0, driver 396");
  EXPECT_EQ(gpu::describe(variants[2].needs), "any machine");
}

TEST(VariantList, EveryMistakeIsToldWithItsPlace) {
  const auto all = mistakes(R"(
variants:
  - {image: a, cpu: haswel}
  - {image: b, driver: 390.30}
  - {image: c, cuda: new, size: 3}
  - {name: d}
  - {image: "variants:/other.yaml"}
)");
  for (const auto* part : {"/variants/0/cpu", "/variants/1/driver", "/variants/2/cuda", "size",
                           "/variants/3/image", "/variants/4/image"})
    EXPECT_THAT(all, HasSubstr(part));
  EXPECT_THAT(mistakes("variants: []"), HasSubstr("no image"));
  EXPECT_THAT(mistakes("{}"), HasSubstr("no image"));
  EXPECT_THAT(mistakes("- a"), HasSubstr("object"));
  EXPECT_NE(mistakes("variants: [{image: a}"), "");
  std::string many = "variants:\n";
  for (int i = 0; i < 300; ++i) many += "  - {image: a}\n";
  EXPECT_THAT(mistakes(many), HasSubstr("more than 256"));
}

TEST(IndexVariants, AreSaidInAnnotations) {
  const auto variants =
      variants_of(
          {entry({{"dev.drover.variant.name", "fast"},
                  {"dev.drover.variant.cpu", "skylake-avx512"},
                  {"dev.drover.variant.driver", ">=396"},
                  {"org.opencontainers.image.title", "x"}}),
           entry({{"dev.drover.variant.compute-capability", "5.2"}, {"dev.drover.variant.cuda", "9.2"}}),
           entry({})},
          "oci:/srv/tool:1", "amd64")
          .value();
  ASSERT_EQ(variants.size(), 3U);
  EXPECT_EQ(variants[0].needs.name, "fast");
  EXPECT_EQ(variants[0].reference, "oci:/srv/tool:1@sha256:" + std::string(64, 'a'));
  EXPECT_EQ(gpu::describe(variants[0].needs), "driver >=396, CPU skylake-avx512");
  EXPECT_EQ(variants[1].needs.name, "compute capability 5.2, CUDA 9.2");
  EXPECT_EQ(gpu::describe(variants[2].needs), "any machine");
}

TEST(IndexVariants, AreSaidByTheStandardPlatformToo) {
  const auto variants =
      variants_of(
          {entry({}, Platform{"linux", "amd64", "v3"}), entry({}, Platform{"linux", "amd64", ""}),
           entry({}, Platform{"linux", "arm64", "v8"}), entry({}, Platform{"unknown", "unknown", ""})},
          "tool", "amd64")
          .value();
  ASSERT_EQ(variants.size(), 2U) << "other architectures and attestations are none of this machine's";
  EXPECT_EQ(gpu::describe(variants[0].needs), "CPU x86-64-v3");
  EXPECT_EQ(gpu::describe(variants[1].needs), "any machine");
}

TEST(IndexVariants, AnOrdinaryIndexHasNone) {
  EXPECT_THAT(
      variants_of({entry({}, Platform{"linux", "amd64", ""}), entry({}, Platform{"linux", "arm64", "v8"})},
                  "tool", "amd64")
          .value(),
      IsEmpty());
  EXPECT_THAT(variants_of({}, "tool", "amd64").value(), IsEmpty());
}

TEST(IndexVariants, WhatIsNotUnderstoodIsRefused) {
  const auto refused = [](const std::string& field, const std::string& value) {
    const auto variants = variants_of({entry({{"dev.drover.variant." + field, value}})}, "tool", "amd64");
    EXPECT_FALSE(variants) << field;
    return variants ? "" : to_string(variants.error());
  };
  EXPECT_THAT(refused("cpu", "skylake-avx51"), HasSubstr("did you mean 'skylake-avx512'?"));
  EXPECT_THAT(refused("compute-capabilty", "5.2"), HasSubstr("did you mean 'compute-capability'?"));
  EXPECT_THAT(refused("driver", "new"), HasSubstr("annotation 'dev.drover.variant.driver'"));
  EXPECT_THAT(refused("name", ""), HasSubstr("1 to 128 bytes"));
}

}  // namespace
}  // namespace drover::image
