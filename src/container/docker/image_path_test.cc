#include "container/docker/image_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace drover::container::docker {
namespace {

using ::testing::ElementsAre;

/// Entries by path; the value is a link's target, or "".
LookUp image_of(std::map<std::string, std::string> entries) {
  return [entries = std::move(entries)](const std::string& path) -> Result<std::optional<ImageEntry>> {
    const auto found = entries.find(path);
    if (found == entries.end()) return std::nullopt;
    return ImageEntry{found->second};
  };
}

std::string real(const std::string& path, const LookUp& image) {
  return follow(path, image).value().real;
}

TEST(ImagePath, WithoutLinksAPathIsItself) {
  const auto image = image_of({{"/a", ""}, {"/a/b", ""}});
  EXPECT_EQ(real("/a/b", image), "/a/b");
  EXPECT_EQ(real("/a/b/new/er", image), "/a/b/new/er");
  EXPECT_EQ(real("/", image), "/");
}

TEST(ImagePath, LinksAreFollowedWithinTheImage) {
  const auto image = image_of({{"/var", ""},
                               {"/var/run", "../run"},
                               {"/run", ""},
                               {"/abs", "/var/run/x"},
                               {"/out", "../../../../etc"},
                               {"/here", "."},
                               {"/top", "/"}});
  EXPECT_EQ(real("/var/run/lock", image), "/run/lock");
  EXPECT_EQ(real("/abs/y", image), "/run/x/y");
  EXPECT_EQ(real("/out/passwd", image), "/etc/passwd");
  EXPECT_EQ(real("/here/run", image), "/run");
  EXPECT_EQ(real("/top/top/run", image), "/run");
}

TEST(ImagePath, EverythingOnTheWayIsTold) {
  const auto image = image_of({{"/l", "/v/back"}, {"/v", ""}, {"/v/back", "/t"}, {"/t", ""}});
  const auto found = follow("/l/z", image).value();
  EXPECT_EQ(found.real, "/t/z");
  EXPECT_THAT(found.passed, ElementsAre("/l", "/v", "/v/back", "/t", "/t/z"));
}

TEST(ImagePath, WhatIsMissingIsAskedForOnce) {
  int asked = 0;
  const LookUp image = [&](const std::string&) -> Result<std::optional<ImageEntry>> {
    ++asked;
    return std::nullopt;
  };
  EXPECT_EQ(real("/a/b/c/d", image), "/a/b/c/d");
  EXPECT_EQ(asked, 1);
}

TEST(ImagePath, ALinkMayLeaveWhatIsMissing) {
  EXPECT_EQ(real("/l", image_of({{"/l", "/gone/../v"}, {"/v", "/w"}, {"/w", ""}})), "/w");
}

TEST(ImagePath, LoopsEnd) {
  const auto image = image_of({{"/a", "/b"}, {"/b", "/a"}, {"/deep", "deep/deep"}});
  for (const auto* path : {"/a", "/deep"}) EXPECT_EQ(follow(path, image).error().kind, ErrorKind::kInvalid);
  std::string long_path;
  for (int i = 0; i < 2000; ++i) long_path += "/x";
  EXPECT_EQ(follow(long_path, image).error().kind, ErrorKind::kInvalid);
}

TEST(ImagePath, AnEngineThatDoesNotAnswerIsAnError) {
  const LookUp silent = [](const std::string&) -> Result<std::optional<ImageEntry>> {
    return fail(ErrorKind::kUnavailable, "no");
  };
  EXPECT_EQ(follow("/a", silent).error().kind, ErrorKind::kUnavailable);
}

}  // namespace
}  // namespace drover::container::docker
