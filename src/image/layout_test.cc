#include "image/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "image/digest.h"
#include "image/fixtures.h"

namespace drover::image {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::LayoutBuilder;
using testing::make_tar;
using testing::tagged;
using testing::TemporaryFolder;

constexpr const char* kIndexType = "application/vnd.oci.image.index.v1+json";

std::string digest_of(const json& descriptor) {
  return descriptor.at("digest").get<std::string>();
}

class Layout : public ::testing::Test {
 protected:
  Result<Contents> read(const std::string& tag = "") const {
    const Reader reader(testing::this_user());
    DROVER_TRY(const auto files, FolderFiles::open_folder(reader, layout_.folder()));
    return read_layout(*files, tag, "amd64");
  }
  json image(const std::string& name, const std::string& architecture = "amd64") {
    return layout_.image({make_tar({testing::file(name, "")})}, {{"architecture", architecture}});
  }
  static json on(json descriptor, const std::string& architecture, const std::string& os = "linux") {
    descriptor["platform"] = {{"os", os}, {"architecture", architecture}};
    return descriptor;
  }
  json nested(const std::vector<json>& manifests) {
    return layout_.descriptor(layout_.blob(json({{"manifests", manifests}}).dump()), kIndexType);
  }
  void expect_refused(const std::string& words, const std::string& tag = "") const {
    const auto contents = read(tag);
    ASSERT_FALSE(contents);
    EXPECT_THAT(to_string(contents.error()), HasSubstr(words));
  }

  TemporaryFolder scratch_;
  LayoutBuilder layout_{scratch_ / "layout"};
};

TEST_F(Layout, TheOnlyImageNeedsNoTag) {
  const auto layer = make_tar({testing::file("a", "x")});
  const auto descriptor = layout_.image({layer}, {{"architecture", "amd64"}, {"config", {{"User", "app"}}}});
  layout_.index({tagged(descriptor, "1.0")});
  const auto contents = read();
  ASSERT_TRUE(contents) << to_string(contents.error());
  EXPECT_EQ(contents->digest, digest_of(descriptor));
  EXPECT_EQ(contents->config.user, "app");
  ASSERT_EQ(contents->layers.size(), 1U);
  EXPECT_EQ(contents->layers[0].diff_id, sha256_of(layer));
  EXPECT_EQ(contents->layers[0].digest, sha256_of(testing::gzip(layer)));
}

TEST_F(Layout, TagsSelect) {
  const auto one = image("one");
  const auto two = image("two");
  layout_.index({tagged(one, "1"), tagged(two, "2"), tagged(two, "latest")});
  EXPECT_EQ(read("1")->digest, digest_of(one));
  EXPECT_EQ(read("latest")->digest, digest_of(two));
  expect_refused("add ':' and one of its tags: 1, 2, latest");
  expect_refused("no image with tag '3' (its tags: 1, 2, latest)", "3");
}

TEST_F(Layout, OneImageWithTwoTagsIsOneImage) {
  const auto one = image("one");
  layout_.index({tagged(one, "1"), tagged(one, "latest")});
  EXPECT_TRUE(read());
}

TEST_F(Layout, ContainerdsFullNamesSelectToo) {
  auto one = image("one");
  one["annotations"]["io.containerd.image.name"] = "docker.io/library/busybox:latest";
  layout_.index({one});
  EXPECT_TRUE(read("busybox"));
  EXPECT_FALSE(read("debian"));
}

TEST_F(Layout, ThePlatformSelects) {
  const auto arm = image("arm", "arm64");
  const auto amd = image("amd", "amd64");
  const auto windows = image("windows", "amd64");
  layout_.index(
      {on(windows, "amd64", "windows"), on(arm, "arm64"), on(amd, "amd64"), on(arm, "unknown", "unknown")});
  EXPECT_EQ(read()->digest, digest_of(amd));
}

TEST_F(Layout, IndexesNest) {
  const auto amd = image("amd");
  layout_.index({tagged(nested({on(image("arm", "arm64"), "arm64"), on(amd, "amd64")}), "v1")});
  EXPECT_EQ(read("v1")->digest, digest_of(amd));
}

TEST_F(Layout, IndexesDoNotNestForEver) {
  auto inner = nested({image("x")});
  for (int i = 0; i < 10; ++i) inner = nested({inner});
  layout_.index({inner});
  expect_refused("nest more than");
}

TEST_F(Layout, ForAnotherMachineOnly) {
  layout_.index({on(image("arm", "arm64"), "arm64")});
  expect_refused("there is no image for this machine (linux/amd64), only for linux/arm64");
  layout_.index({image("arm", "arm64")});
  expect_refused("the image is for linux/arm64, and this machine is linux/amd64");
}

TEST_F(Layout, EveryDocumentIsCheckedAgainstItsDigest) {
  const auto descriptor = image("x");
  layout_.index({descriptor});
  const auto digest = digest_of(descriptor);
  const auto path = layout_.blob_path(digest);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  expect_refused("its manifest is damaged");
  testing::write(path, std::string(descriptor["size"].get<std::size_t>(), ' '));
  expect_refused("digest " + digest);
  std::filesystem::remove(path);
  expect_refused("No such file");
}

TEST_F(Layout, LayersAndDiffIdsMustGoTogether) {
  layout_.index({layout_.image({make_tar({})},
                               {{"architecture", "amd64"}, {"rootfs", {{"diff_ids", json::array()}}}})});
  expect_refused("has 1 layers, and its configuration names 0");
}

TEST_F(Layout, OtherArtifactsAreNoImages) {
  layout_.index({layout_.descriptor(layout_.blob("{}"), "application/vnd.example.thing")});
  expect_refused("of type 'application/vnd.example.thing', not a container image");
}

TEST_F(Layout, WhatIsNotALayout) {
  layout_.index({});
  expect_refused("holds no image");
  testing::write(layout_.folder() + "/index.json", "not json");
  expect_refused("'index.json' is not JSON");
  testing::write(layout_.folder() + "/oci-layout", R"({"imageLayoutVersion":"3.0.0"})");
  expect_refused("version '3.0.0'");
}

TEST_F(Layout, BlobsMayBeLinksWhereTheReaderMayGo) {
  const auto descriptor = image("x");
  layout_.index({descriptor});
  const auto path = layout_.blob_path(digest_of(descriptor));
  std::filesystem::rename(path, scratch_ / "elsewhere");
  std::filesystem::create_symlink(scratch_ / "elsewhere", path);
  EXPECT_TRUE(read());
}

}  // namespace
}  // namespace drover::image
