#include "image/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "image/digest.h"

namespace drover::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string kDigest = sha256_of("");

std::string descriptor(const std::string& type) {
  return R"({"mediaType":")" + type + R"(","size":1,"digest":")" + kDigest + R"("})";
}
const std::string kConfigType = "application/vnd.oci.image.config.v1+json";

TEST(Digest, IsTheKnownOne) {
  EXPECT_EQ(sha256_of("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(digest_hex(kDigest));
  for (const auto* wrong : {"", "sha256:", "sha256:abc", "sha512:00", "md5:../../etc/passwd"})
    EXPECT_FALSE(digest_hex(wrong)) << wrong;
  EXPECT_FALSE(digest_hex("sha256:" + std::string(63, '0') + "/"));
  EXPECT_FALSE(digest_hex("sha256:" + std::string(64, 'A')));
}

TEST(Document, ReadsAConfiguration) {
  const auto parsed = parse_config(R"({"architecture":"arm64","os":"linux","extra":[1],"config":{"User":"app",
    "Entrypoint":["/run"],"Cmd":null,"Env":["A=1","B=x=y","broken","=odd"],"WorkingDir":"/w",
    "Labels":{"com.nvidia.volumes.needed":"nvidia_driver"}},"rootfs":{"diff_ids":[")" +
                                       kDigest + R"("]}})",
                                   "it");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  const auto& config = parsed->config;
  EXPECT_EQ(config.architecture, "arm64");
  EXPECT_EQ(config.user, "app");
  EXPECT_EQ(config.working_directory, "/w");
  EXPECT_THAT(config.entrypoint, ElementsAre("/run"));
  EXPECT_TRUE(config.command.empty());
  EXPECT_THAT(config.environment, ElementsAre(Pair("A", "1"), Pair("B", "x=y")));
  EXPECT_THAT(config.labels, ElementsAre(Pair("com.nvidia.volumes.needed", "nvidia_driver")));
  EXPECT_THAT(parsed->diff_ids, ElementsAre(kDigest));
}

TEST(Document, HostileJsonIsOneSentence) {
  const std::vector<std::string> texts = {
      "",
      "[",
      "null",
      "[]",
      "7",
      "\xff\xfe",
      "{\"config\":",
      R"({"config":{"Env":"no list"}})",
      R"({"config":[],"rootfs":[],"layers":7,"manifests":{}})",
      R"({"rootfs":{"diff_ids":["sha256:../../etc"]}})",
      R"({"manifests":[{"digest":"sha256:00","size":1e400}]})",
      R"({"manifests":[{"digest":")" + kDigest + R"(","size":-1}]})",
      R"({"manifests":[{"digest":")" + kDigest + R"(","size":1.5}]})",
      R"({"config":)" + descriptor(kConfigType) + R"(,"layers":[{"size":99999999999999999999999}]})",
      std::string(2'000'000, '['),
      std::string(kMaxDocument + 1, ' '),
  };
  for (const auto& text : texts) {
    const auto manifest = parse_manifest(text, "it");
    const auto config = parse_config(text, "it");
    ASSERT_FALSE(manifest) << text.substr(0, 80);
    ASSERT_FALSE(config) << text.substr(0, 80);
    for (const auto& error : {manifest.error(), config.error()}) {
      EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
      EXPECT_LT(error.message.size(), 700U);
    }
  }
}

TEST(Document, NestingInsideStringsDoesNotCount) {
  EXPECT_TRUE(parse_index(R"({"annotations":")" + std::string(100, '[') + R"(\"{{","manifests":[]})", "it"));
}

TEST(Document, OnlyContainerImagesAreTaken) {
  const auto manifest = [](const std::string& config, const std::string& layer) {
    return parse_manifest(R"({"config":)" + descriptor(config) + R"(,"layers":[)" + descriptor(layer) + "]}",
                          "it");
  };
  for (const auto* layer :
       {"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
        "application/vnd.oci.image.layer.v1.tar+zstd", "application/vnd.docker.image.rootfs.diff.tar.gzip"})
    EXPECT_TRUE(manifest(kConfigType, layer)) << layer;
  EXPECT_THAT(manifest("application/vnd.cncf.helm.config.v1+json", "x").error().message,
              HasSubstr("not a container image"));
  EXPECT_THAT(manifest(kConfigType, "application/vnd.oci.image.layer.v1.tar+gzip+encrypted").error().message,
              HasSubstr("which Drover cannot unpack"));
}

TEST(Document, LayersAreLimited) {
  const auto with_layers = [](std::size_t count) {
    std::string layers;
    for (std::size_t i = 0; i < count; ++i)
      layers += (i > 0 ? "," : "") + descriptor("application/vnd.oci.image.layer.v1.tar");
    return parse_manifest(R"({"config":)" + descriptor(kConfigType) + R"(,"layers":[)" + layers + "]}", "it");
  };
  EXPECT_TRUE(with_layers(kMaxLayers));
  EXPECT_FALSE(with_layers(kMaxLayers + 1));
  EXPECT_FALSE(with_layers(0));
}

TEST(Document, LayoutVersion) {
  EXPECT_TRUE(check_layout_version(R"({"imageLayoutVersion":"1.0.0"})"));
  EXPECT_FALSE(check_layout_version(R"({"imageLayoutVersion":"2.0.0"})"));
  EXPECT_FALSE(check_layout_version("{}"));
}

TEST(Document, ArchitecturesHaveTheirGoNames) {
  EXPECT_EQ(go_architecture("x86_64"), "amd64");
  EXPECT_EQ(go_architecture("aarch64"), "arm64");
  EXPECT_EQ(go_architecture("ppc64le"), "ppc64le");
}

RC_GTEST_PROP(Document, RandomTextNeverCrashes, (const std::string& text)) {
  parse_manifest(text, "it");
  parse_config("{" + text, "it");
  parse_archive_manifest("[" + text, "it");
  parse_index(R"({"manifests":[)" + text + "]}", "it");
}

}  // namespace
}  // namespace drover::image
