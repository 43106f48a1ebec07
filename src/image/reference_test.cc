#include "image/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::image {
namespace {

using Kind = Reference::Kind;
using ::testing::HasSubstr;

TEST(Reference, KnowsEveryKind) {
  const std::vector<std::pair<std::string, Reference>> cases = {
      {"oci:/srv/tool", {Kind::kLayout, "/srv/tool", ""}},
      {"oci:/srv/tool:1.0", {Kind::kLayout, "/srv/tool", "1.0"}},
      {"oci-archive:/srv/tool.tar:latest", {Kind::kOciArchive, "/srv/tool.tar", "latest"}},
      {"docker-archive:/srv/a.tar", {Kind::kDockerArchive, "/srv/a.tar", ""}},
      {"docker-archive:/srv/a.tar:busybox:1", {Kind::kDockerArchive, "/srv/a.tar", "busybox:1"}},
      {"rootfs:/srv/a:b", {Kind::kRootFolder, "/srv/a:b", ""}},
      {"dir:/srv/root", {Kind::kRootFolder, "/srv/root", ""}},
      {"/srv/tool", {Kind::kPath, "/srv/tool", ""}},
      {"/srv/tool:1.0", {Kind::kPath, "/srv/tool", "1.0"}},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_reference(text);
    ASSERT_TRUE(parsed) << text << ": " << to_string(parsed.error());
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(Reference, NamesLieInTheFolderOfImages) {
  const std::vector<std::pair<std::string, Reference>> cases = {
      {"tensorflow/tensorflow:latest-gpu", {Kind::kLayout, "/i/tensorflow/tensorflow", "latest-gpu"}},
      {"busybox", {Kind::kLayout, "/i/busybox", "latest"}},
      {"docker.io/library/busybox:1", {Kind::kLayout, "/i/busybox", "1"}},
      {"localhost:5000/a/b", {Kind::kLayout, "/i/localhost:5000/a/b", "latest"}},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(reference_in("/i", text), expected) << text;
  for (const auto* text :
       {"", "../etc", "a/../../etc", "a//b", "/etc", "a/", ".hidden", "a b", "a@sha256:00"})
    EXPECT_FALSE(reference_in("/i", text)) << text;
}

TEST(Reference, OthersAreNamesInRegistries) {
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
           {"tensorflow/tensorflow:latest-gpu", "docker.io/tensorflow/tensorflow:latest-gpu"},
           {"busybox", "docker.io/library/busybox:latest"},
           {"docker://busybox:1", "docker.io/library/busybox:1"},
           {"localhost:5000/a/b", "localhost:5000/a/b:latest"}})
    EXPECT_EQ(parse_reference(text), (Reference{Kind::kName, name, ""})) << text;
  EXPECT_EQ(parse_reference("Busy box").error().kind, ErrorKind::kInvalid);
}

TEST(Reference, OtherTransportsAreRefusedWithTheCommandThatCopies) {
  for (const auto* name : {"docker-daemon:busybox:latest", "containers-storage:busybox", "ostree:busybox"}) {
    const auto parsed = parse_reference(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_THAT(parsed.error().hint, HasSubstr(std::string("skopeo copy ") + name + " oci:/"));
  }
}

TEST(Reference, PathsMustBeWhole) {
  for (const auto* name : {"oci:tool", "rootfs:./root", "./tool", "../tool", "docker-archive:", "oci:"})
    EXPECT_EQ(parse_reference(name).error().kind, ErrorKind::kInvalid) << name;
  EXPECT_FALSE(parse_reference(""));
  EXPECT_FALSE(parse_reference(std::string_view("/a\0b", 4)));
  EXPECT_FALSE(parse_reference("/" + std::string(5000, 'a')));
}

TEST(Reference, HostileNamesDoNotReachTheTerminal) {
  const auto parsed = parse_reference("oci:\x1b[2J\xff");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("\\x1b[2J\\xff"));
}

TEST(SameName, LeavesOutWhatGoesWithoutSaying) {
  EXPECT_TRUE(same_name("busybox", "busybox:latest"));
  EXPECT_TRUE(same_name("docker.io/library/busybox:latest", "busybox"));
  EXPECT_TRUE(same_name("localhost:5000/a", "localhost:5000/a:latest"));
  EXPECT_FALSE(same_name("busybox:1", "busybox"));
  EXPECT_FALSE(same_name("a/busybox", "busybox"));
}

}  // namespace
}  // namespace drover::image
