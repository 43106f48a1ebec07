#include "image/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "image/digest.h"
#include "image/fixtures.h"

namespace drover::image {
namespace {

using nlohmann::json;
using testing::file;
using ::testing::HasSubstr;
using testing::Item;
using testing::make_tar;
using testing::TemporaryFolder;

class DockerArchive : public ::testing::Test {
 protected:
  static json config(const std::vector<std::string>& layers) {
    json diff_ids = json::array();
    for (const auto& layer : layers) diff_ids.push_back(sha256_of(layer));
    return {{"architecture", "amd64"}, {"os", "linux"}, {"rootfs", {{"diff_ids", diff_ids}}}};
  }
  static json entry(const std::string& config, const std::vector<std::string>& layers,
                    const std::vector<std::string>& tags) {
    return {{"Config", config}, {"Layers", layers}, {"RepoTags", tags}};
  }
  Result<std::unique_ptr<TarFiles>> open(const std::string& bytes) const {
    testing::write(scratch_ / "image.tar", bytes);
    return TarFiles::open_archive(Reader(testing::this_user()), scratch_ / "image.tar");
  }
  Result<Contents> read(const std::vector<Item>& items, const std::string& name = "") const {
    DROVER_TRY(const auto files, open(make_tar(items)));
    return read_docker_archive(*files, name, "amd64");
  }
  void expect_refused(const std::vector<Item>& items, const std::string& words,
                      const std::string& name = "") const {
    const auto contents = read(items, name);
    ASSERT_FALSE(contents);
    EXPECT_THAT(to_string(contents.error()), HasSubstr(words));
  }

  TemporaryFolder scratch_;
  std::string layer_ = make_tar({file("a", "x")});
  std::string config_ = config({layer_}).dump();
};

TEST_F(DockerArchive, HasItsImage) {
  const auto contents =
      read({file("abc.json", config_), file("1/layer.tar", layer_),
            file("manifest.json", json::array({entry("abc.json", {"1/layer.tar"}, {"a:1"})}).dump())});
  ASSERT_TRUE(contents) << to_string(contents.error());
  EXPECT_EQ(contents->digest, sha256_of(config_));
  ASSERT_EQ(contents->layers.size(), 1U);
  EXPECT_EQ(contents->layers[0].name, "1/layer.tar");
  EXPECT_EQ(contents->layers[0].diff_id, sha256_of(layer_));
}

TEST_F(DockerArchive, NamesSelect) {
  const std::vector<Item> items = {
      file("1.json", config_), file("2.json", config({layer_, layer_}).dump()), file("l", layer_),
      file("manifest.json",
           json({entry("1.json", {"l"}, {"busybox:latest"}), entry("2.json", {"l", "l"}, {"debian:12"})})
               .dump())};
  EXPECT_EQ(read(items, "docker.io/library/busybox")->layers.size(), 1U);
  EXPECT_EQ(read(items, "debian:12")->layers.size(), 2U);
  expect_refused(items, "add ':' and one of these: busybox:latest, debian:12");
  expect_refused(items, "no image 'debian' (its images: busybox:latest, debian:12)", "debian");
}

TEST_F(DockerArchive, FollowsTheLinksOfOlderDocker) {
  const std::vector<Item> items = {file("1/layer.tar", layer_),
                                   testing::symlink("2/layer.tar", "../1/layer.tar"),
                                   testing::hard_link("3/layer.tar", "2/layer.tar")};
  const auto files = open(make_tar(items));
  ASSERT_TRUE(files) << to_string(files.error());
  for (const auto* name : {"2/layer.tar", "3/layer.tar"})
    EXPECT_EQ((*files)->read(name, 1 << 20).value_or(""), layer_);
}

TEST_F(DockerArchive, LinksNeverLeaveTheArchive) {
  for (const auto* target : {"../../etc/passwd", "/etc/passwd"})
    expect_refused({testing::symlink("1/layer.tar", target)}, "'1/layer.tar' is a link that leads out");
  const auto files = open(make_tar({testing::symlink("a", "b"), testing::symlink("b", "a")}));
  ASSERT_TRUE(files);
  EXPECT_THAT((*files)->read("a", 100).error().message, HasSubstr("circle of links"));
  expect_refused({file("../manifest.json", "")}, "climbs out");
}

TEST_F(DockerArchive, CompressedOnesAreToBeUnpackedFirst) {
  for (const auto& bytes : {testing::gzip(make_tar({})), testing::zstd(make_tar({}))}) {
    const auto files = open(bytes);
    ASSERT_FALSE(files);
    EXPECT_THAT(to_string(files.error()), HasSubstr("is compressed (unpack it once with 'gunzip'"));
  }
}

TEST_F(DockerArchive, WhatIsMissingIsNamed) {
  const auto manifest = [&](const json& document) { return file("manifest.json", document.dump()); };
  expect_refused({file("other", "")}, "has no file 'manifest.json'");
  const auto of = [&](const std::string& config, const std::vector<std::string>& layers) {
    return manifest(json::array({entry(config, layers, {})}));
  };
  expect_refused({manifest(json::array())}, "holds no image");
  expect_refused({of("c.json", {"l"})}, "has no file 'c.json'");
  expect_refused({of("../c.json", {"l"})}, "climbs out");
  expect_refused({file("c.json", config_), of("c.json", {"../l"})}, "climbs out");
  expect_refused({file("c.json", config_), of("c.json", {"l", "l"})}, "has 2 layers");
  expect_refused({of("c.json", {})}, "has 0 layers");
  expect_refused({file("manifest.json", "[[[")}, "not JSON");
}

TEST_F(DockerArchive, WhatIsNoArchive) {
  for (const auto& junk : {std::string("text"), std::string(), std::string(4096, '\xff')}) {
    const auto files = open(junk);
    ASSERT_FALSE(files);
    EXPECT_THAT(files.error().message, HasSubstr("is not an image archive"));
  }
}

}  // namespace
}  // namespace drover::image
