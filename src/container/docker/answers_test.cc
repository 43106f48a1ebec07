#include "container/docker/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "container/docker/engine.h"
#include "container/docker/frames.h"
#include "container/docker/pull_progress.h"

namespace drover::container::docker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(DockerAnswers, AnImageIsReadAsTheEngineDescribesIt) {
  const auto facts =
      parse_image(R"({"Id": "sha256:1f", "Architecture": "amd64", "GraphDriver": {}, "Config": {
      "User": "app", "Env": ["PATH=/bin", "A=b=c", "odd"], "Cmd": ["run"], "Entrypoint": null,
      "WorkingDir": "/srv", "Volumes": {"/data": {}, "/var/lib/x": {}}, "Labels": {"com.nvidia.volumes.needed": "nvidia_driver"}}})")
          .value();
  EXPECT_EQ(facts.id, "sha256:1f");
  EXPECT_EQ(facts.config.user, "app");
  EXPECT_THAT(facts.config.environment, ElementsAre(Pair("PATH", "/bin"), Pair("A", "b=c")));
  EXPECT_THAT(facts.config.command, ElementsAre("run"));
  EXPECT_THAT(facts.config.entrypoint, IsEmpty());
  EXPECT_EQ(facts.config.working_directory, "/srv");
  EXPECT_THAT(facts.volumes, ElementsAre("/data", "/var/lib/x"));
  EXPECT_THAT(facts.config.labels, ElementsAre(Pair("com.nvidia.volumes.needed", "nvidia_driver")));
}

TEST(DockerAnswers, WhatAnotherVersionLeavesOutIsNoMistake) {
  EXPECT_TRUE(parse_image("{}"));
  const auto state =
      parse_container(R"({"State": {"Status": "exited", "ExitCode": 300, "Pid": -4}})").value();
  EXPECT_EQ(state.exit_code, 255);
  EXPECT_EQ(state.pid, 0);
  EXPECT_FALSE(state.running);
  EXPECT_THAT(parse_shortcomings("{}").value(), IsEmpty());
  EXPECT_THAT(parse_shortcomings(R"({"MemoryLimit": false, "PidsLimit": true})").value(),
              ElementsAre("it cannot limit memory"));
}

TEST(DockerAnswers, TheEntrypointOfAContainerIsTold) {
  const auto container = parse_container(R"({"Config": {"Entrypoint": ["/dev/drover-init", "/w"]}})").value();
  EXPECT_THAT(container.entrypoint, ElementsAre("/dev/drover-init", "/w"));
}

TEST(DockerAnswers, VersionsOfPartsAreTold) {
  const auto version = parse_version(R"({"Version": "20.10.24", "Components": [
      {"Name": "Engine", "Version": "20.10.24"}, {"Name": "runc", "Version": "1.1.5+ds1"}, 3]})")
                           .value();
  EXPECT_EQ(version.name, "Docker Engine");
  EXPECT_EQ(version.components.at("runc"), "1.1.5+ds1");
}

TEST(DockerAnswers, WhatCannotBeReliedOnIsAnError) {
  for (const auto* text : {"", "[]", "no JSON", R"({"Id": 3})", R"({"Id": "../x"})"})
    EXPECT_FALSE(parse_id(text)) << text;
  for (const auto* text : {"", "{}", R"({"StatusCode": "0"})"}) EXPECT_FALSE(parse_exit_code(text)) << text;
  EXPECT_EQ(parse_exit_code(R"({"StatusCode": 137, "Error": null})").value(), 137);
  EXPECT_THAT(parse_ids(R"([{"Id": "ab"}, {"Names": []}, 3])").value(), ElementsAre("ab"));
}

TEST(DockerAnswers, ARefusalIsOneLine) {
  EXPECT_EQ(parse_refusal(R"({"message": "no such image: x\n"})"), "no such image: x");
  EXPECT_EQ(parse_refusal("plain\ntext\n"), "plain text");
  EXPECT_LE(parse_refusal(std::string(100'000, 'x')).size(), 500U);
}

TEST(DockerEngine, SpeaksTheNewestVersionThatBothKnow) {
  EXPECT_EQ(negotiate("1.12", "1.41").value(), "1.41");
  EXPECT_EQ(negotiate("1.24", "1.40").value(), "1.40");
  EXPECT_EQ(negotiate("1.44", "1.99").value(), "1.51");
  EXPECT_EQ(negotiate("1.60", "1.99").value(), "1.60") << "the nearest to what is known";
  EXPECT_EQ(negotiate("", "1.41").value(), "1.41");
  EXPECT_EQ(negotiate("1.12", "1.39").error().kind, ErrorKind::kUnsupported);
  for (const auto* odd : {"", "1", "1.", "one.two", "1.41.0"})
    EXPECT_EQ(negotiate("1.12", odd).error().kind, ErrorKind::kUnsupported) << odd;
}

TEST(DockerEngine, TakesAnImageSNameApart) {
  const auto parts = [](std::string_view name) {
    const auto image = parse_image_name(name).value();
    return image.name + " " + image.tag;
  };
  EXPECT_EQ(parts("busybox"), "busybox latest");
  EXPECT_EQ(parts("tensorflow/tensorflow:1.4.0-gpu"), "tensorflow/tensorflow 1.4.0-gpu");
  EXPECT_EQ(parts("localhost:5000/a/b"), "localhost:5000/a/b latest");
  EXPECT_EQ(parts("localhost:5000/a/b:c"), "localhost:5000/a/b c");
  EXPECT_EQ(parts("a@sha256:0f"), "a sha256:0f");
  for (const auto* bad : {"", "/a", "a/", "a b", "a?b", "a/../b", "a%2fb", "a\nb", "a//b", ":tag"})
    EXPECT_FALSE(parse_image_name(bad)) << bad;
}

TEST(DockerFrames, AnyCutOfTheStreamGivesTheSame) {
  const std::string stream("\1\0\0\0\0\0\0\3out\2\0\0\0\0\0\0\4errs\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1!", 40);
  for (std::size_t cut = 1; cut <= stream.size(); ++cut) {
    std::array<std::string, 2> outputs;
    FrameReader reader;
    for (std::size_t at = 0; at < stream.size(); at += cut)
      ASSERT_TRUE(reader.feed(std::string_view(stream).substr(at, cut),
                              [&](std::size_t output, std::string_view bytes) { outputs[output] += bytes; }));
    EXPECT_EQ(outputs[0], "out!") << cut;
    EXPECT_EQ(outputs[1], "errs") << cut;
  }
}

TEST(DockerFrames, WhatIsNoFrameIsAnError) {
  FrameReader reader;
  EXPECT_EQ(reader.feed("plain text", [](auto, auto) {}).error().kind, ErrorKind::kCorrupt);
}

TEST(DockerPull, TellsHowFarItIsAndWhyItFailed) {
  std::vector<std::string> told;
  PullProgress progress("x:1", [&](const std::string& words) { told.push_back(words); });
  const std::string text = R"({"status":"Pulling from x","id":"1"}
{"status":"Downloading","progressDetail":{"current":16777216,"total":33554432},"id":"aa"}
{"status":"Download complete","progressDetail":{},"id":"aa"}
)";
  for (const char c : text) ASSERT_TRUE(progress.read(std::string_view(&c, 1)));
  EXPECT_TRUE(progress.finish());
  EXPECT_THAT(told,
              ElementsAre("pulling x:1", "pulling x:1: 16 MiB of 32 MiB", "pulling x:1: 32 MiB of 32 MiB"));
  const auto failed =
      progress.read(R"({"errorDetail":{"message":"manifest unknown"},"error":"manifest unknown"})"
                    "\n");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(failed.error().message, HasSubstr("could not pull 'x:1': manifest unknown"));
  PullProgress endless("x", {});
  EXPECT_EQ(endless.read(std::string(2 << 20, 'x')).error().kind, ErrorKind::kCorrupt);
}

TEST(DockerAnswers, WhatLiesAtAPath) {
  const auto stat = [](const char* text) { return parse_path_stat(encode_base64(text)); };
  using Kind = PathStat::Kind;
  EXPECT_EQ(stat(R"({"name":"a","size":12,"mode":420,"linkTarget":""})").value(),
            (PathStat{Kind::kFile, 12, ""}));
  EXPECT_EQ(stat(R"({"name":"a","size":4096,"mode":2147484141})").value(), (PathStat{Kind::kFolder, 0, ""}));
  EXPECT_EQ(stat(R"({"name":"a","size":9,"mode":134218239,"linkTarget":"/lib/b"})").value(),
            (PathStat{Kind::kLink, 0, "/lib/b"}));
  EXPECT_EQ(stat(R"({"name":"a","size":9,"mode":33554852})").value(),
            (PathStat{Kind::kOther, 0, ""}));  // a fifo
  for (const char* wrong : {"", "[]", "{"}) EXPECT_FALSE(stat(wrong)) << wrong;
  EXPECT_FALSE(parse_path_stat("?"));
}

}  // namespace
}  // namespace drover::container::docker
