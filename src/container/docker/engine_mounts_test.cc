#include "container/docker/engine_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace drover::container::docker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

VolumePlan volume_at(const std::string& destination, const std::string& source = "/srv") {
  return {source, destination, "", false};
}

/// Of an image with these links, by their paths; every other path is a folder.
MountCheck::Walk walk_of(std::map<std::string, std::string> links) {
  return [links = std::move(links)](const std::string& path) {
    return follow(path, [&](const std::string& step) -> Result<std::optional<ImageEntry>> {
      const auto link = links.find(step);
      return ImageEntry{link == links.end() ? "" : link->second};
    });
  };
}

Result<MountCheck> check(WantedMounts wanted, std::map<std::string, std::string> links = {}) {
  wanted.image = "evil:1";
  return MountCheck::make(wanted, walk_of(std::move(links)));
}

std::string refusal(WantedMounts wanted, std::map<std::string, std::string> links = {}) {
  const auto checked = check(std::move(wanted), std::move(links));
  return checked ? "" : checked.error().message;
}

TEST(EngineMounts, WhatLiesInTheSandboxOrAnotherVolumeIsMountedThere) {
  const std::vector volumes = {volume_at("/v/a/b"), volume_at("/v"), volume_at("/v/a"), volume_at("/vv"),
                               volume_at("/mnt/mesos/sandbox/x/y")};
  EXPECT_EQ(inner_place(volumes, 0), (InnerPlace{"1", "a/b"}))
      << "the outermost, since its mounts are walked into";
  EXPECT_EQ(inner_place(volumes, 1), std::nullopt);
  EXPECT_EQ(inner_place(volumes, 2), (InnerPlace{"1", "a"}));
  EXPECT_EQ(inner_place(volumes, 3), std::nullopt);
  EXPECT_EQ(inner_place(volumes, 4), (InnerPlace{"sandbox", "x/y"}));
  EXPECT_THAT(mounting_order(volumes), ElementsAre(1, 3, 2, 0, 4));
}

TEST(EngineMounts, PlainVolumesAreFine) {
  WantedMounts wanted{
      {volume_at("/data"), volume_at("/data/in"), volume_at("/etc/hosts"), volume_at("/etc/app")},
      {},
      {},
      ""};
  wanted.image_volumes = {"/cache", "/data"};
  wanted.driver_volume = "/usr/local/nvidia";
  EXPECT_EQ(refusal(wanted), "");
}

TEST(EngineMounts, LinksMayLeadElsewhereInTheImage) {
  EXPECT_EQ(refusal({{volume_at("/var/run/app")}, {"/var/lib"}, {}, ""}, {{"/var/run", "/run"}}), "");
}

TEST(EngineMounts, ALinkOfTheImageLeadsIntoNoOtherVolume) {
  EXPECT_THAT(refusal({{volume_at("/v"), volume_at("/l/new", "/b")}, {}, {}, ""}, {{"/l", "/v"}}),
              HasSubstr("Volume '/srv' cannot be mounted at '/v': volume '/b' would be mounted in it"));
  EXPECT_NE(refusal({{volume_at("/v"), volume_at("/l", "/b")}, {}, {}, ""}, {{"/l", "/v"}}), "");
  EXPECT_NE(refusal({{volume_at("/v"), volume_at("/l/z", "/b")}, {}, {}, ""},
                    {{"/l", "/v/back"}, {"/v/back", "/t"}}),
            "")
      << "by then the volume says where /v/back leads";
  EXPECT_THAT(refusal({{volume_at("/l/new")}, {}, {}, ""}, {{"/l", "mnt/mesos/sandbox"}}),
              HasSubstr("the image leads it into the sandbox"));
}

TEST(EngineMounts, NothingOfTheEngineSOwnIsMadeInAVolume) {
  EXPECT_THAT(refusal({{volume_at("/etc")}, {}, {}, ""}), HasSubstr("'/etc/hosts' would be mounted in it"));
  EXPECT_NE(refusal({{volume_at("/l")}, {}, {}, ""}, {{"/l", "/etc"}}), "");
  EXPECT_NE(refusal({{volume_at("/l")}, {}, {}, ""}, {{"/l", "/"}}), "");
  EXPECT_THAT(refusal({{volume_at("/v")}, {"/v/sub"}, {}, ""}),
              HasSubstr("its volume '/v/sub' would be mounted in it"));
  EXPECT_NE(refusal({{volume_at("/v")}, {"/l/sub"}, {}, ""}, {{"/l", "/v"}}), "");
  EXPECT_NE(refusal({{}, {"/mnt/mesos/sandbox/x"}, {}, ""}), "");
  EXPECT_NE(refusal({{volume_at("/l")}, {}, "/usr/local/nvidia", ""}, {{"/l", "/usr/local"}}), "");
}

TEST(EngineMounts, WhatIsTheContainersOwnIsNotReached) {
  for (const std::string own : {"/dev", "/proc", "/sys", "/dev/shm", "/proc/self/cwd", "/"}) {
    EXPECT_NE(refusal({{volume_at("/l")}, {}, {}, ""}, {{"/l", own}}), "") << own;
    EXPECT_NE(refusal({{}, {"/l"}, {}, ""}, {{"/l", own}}), "") << own;
    EXPECT_NE(refusal({{}, {}, {}, ""}, {{"/mnt/mesos/sandbox", own}}), "") << own;
  }
  EXPECT_NE(refusal({{}, {"/dev"}, {}, ""}), "");
  EXPECT_NE(refusal({{volume_at("/l")}, {}, {}, ""}, {{"/l", "/proc/self/../../v"}}), "");
  EXPECT_THAT(refusal({{}, {}, {}, ""}, {{"/dev", "/mnt/mesos/sandbox"}}),
              HasSubstr("Image 'evil:1' cannot run in a Docker Engine: its '/dev' is a symbolic link"));
}

TEST(EngineMounts, TwoVolumesAtOnePlaceAreRefused) {
  const auto checked = check({{volume_at("/v"), volume_at("/v", "/b")}, {}, {}, ""});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().path, "/volumes/1/container_path");
}

TEST(EngineMounts, AFolderInAVolumeIsNotLeftToTheEngine) {
  const auto walk = walk_of({{"/l", "/v"}, {"/fd", "/proc/self/fd"}});
  const auto checked = MountCheck::make({{volume_at("/v")}, {}, {}, "i"}, walk).value();
  EXPECT_TRUE(checked.stays_in_image(walk("/app").value()));
  for (const auto* path :
       {"/v", "/v/a", "/l/a", "/mnt/mesos/sandbox", "/proc/self/fd/8", "/fd/8", "/dev/shm"})
    EXPECT_FALSE(checked.stays_in_image(walk(path).value())) << path;
}

}  // namespace
}  // namespace drover::container::docker
