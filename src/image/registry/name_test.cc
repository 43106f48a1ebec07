#include "image/registry/name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "image/fixtures.h"

namespace drover::image {
namespace {

const std::string kSomeDigest = "sha256:" + std::string(64, 'a');

TEST(RegistryName, FillsInWhatGoesWithoutSaying) {
  const std::vector<std::pair<std::string, RegistryName>> cases = {
      {"redis", {"docker.io", "library/redis", "latest", ""}},
      {"redis:7", {"docker.io", "library/redis", "7", ""}},
      {"team/tool", {"docker.io", "team/tool", "latest", ""}},
      {"docker.io/redis", {"docker.io", "library/redis", "latest", ""}},
      {"index.docker.io/library/redis:7", {"docker.io", "library/redis", "7", ""}},
      {"localhost/tool", {"localhost", "tool", "latest", ""}},
      {"localhost:5000/a/b:1", {"localhost:5000", "a/b", "1", ""}},
      {"127.0.0.1:5000/tool", {"127.0.0.1:5000", "tool", "latest", ""}},
      {"[::1]:5000/tool:1", {"[::1]:5000", "tool", "1", ""}},
      {"NVCR.io/nvidia/cuda:12.4.1-base_x", {"nvcr.io", "nvidia/cuda", "12.4.1-base_x", ""}},
      {"a.b/c__d/e-f---g.h", {"a.b", "c__d/e-f---g.h", "latest", ""}},
      {"redis@" + kSomeDigest, {"docker.io", "library/redis", "", kSomeDigest}},
      {"localhost:5000/a:1@" + kSomeDigest, {"localhost:5000", "a", "1", kSomeDigest}},
  };
  for (const auto& [text, expected] : cases) {
    const auto name = parse_registry_name(text);
    ASSERT_TRUE(name) << text << ": " << to_string(name.error());
    EXPECT_EQ(*name, expected) << text;
    EXPECT_EQ(parse_registry_name(name->canonical()), *name) << text;
    EXPECT_EQ(parse_registry_name(name->familiar()), *name) << text;
  }
}

TEST(RegistryName, IsShownAsPeopleWriteIt) {
  EXPECT_EQ(parse_registry_name("docker.io/library/redis:7")->familiar(), "redis:7");
  EXPECT_EQ(parse_registry_name("docker.io/team/tool")->familiar(), "team/tool:latest");
  EXPECT_EQ(parse_registry_name("docker.io/library/a/b")->familiar(), "library/a/b:latest");
  EXPECT_EQ(parse_registry_name("a.b/tool:1")->familiar(), "a.b/tool:1");
}

TEST(RegistryName, RefusesWhatNoRegistryHas) {
  for (const auto& text : std::vector<std::string>{"",
                                                   "/",
                                                   "a//b",
                                                   "/a",
                                                   "a/",
                                                   "a b",
                                                   "Redis",
                                                   "team/Tool",
                                                   "a..b",
                                                   "-a",
                                                   "a-",
                                                   "a___b",
                                                   "a:",
                                                   "a:-1",
                                                   "a:" + std::string(129, 'x'),
                                                   "a@",
                                                   "a@sha256:00",
                                                   "a@md5:" + std::string(32, 'a'),
                                                   "..",
                                                   "../a",
                                                   "a/../b",
                                                   "localhost:x/a",
                                                   "localhost:123456/a",
                                                   "localhost:99999/a",
                                                   "localhost:0/a",
                                                   "[::1/a",
                                                   "[]/a",
                                                   "a_b.c/d",
                                                   "a.b/" + std::string(255, 'a'),
                                                   std::string("a\0b", 3),
                                                   "a\n",
                                                   "user@host/a",
                                                   "http://a.b/c",
                                                   "a.b:80:80/c"})
    EXPECT_EQ(testing::refusal_of(parse_registry_name(text)), ErrorKind::kInvalid) << text;
}

RC_GTEST_PROP(RegistryNameProperty, WhatIsReadIsReadAgainAsTheSame, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abz09AZ./:@_-[]")));
  const auto name = parse_registry_name(text);
  if (!name) return;
  RC_ASSERT(parse_registry_name(name->canonical()) == *name);
  RC_ASSERT(name->repository.find("..") == std::string::npos);
}

}  // namespace
}  // namespace drover::image
