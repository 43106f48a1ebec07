// What earlier versions wrote into the folders of tasks: tests/data/formats.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "container/fetch/fetcher.h"
#include "container/launch_spec.h"
#include "container/status_file.h"

namespace drover::container {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string kept(const std::string& name) {
  return read_file(DROVER_SOURCE_DIR "/tests/data/formats/1/" + name).value();
}

/// Of a format that is not there yet.
std::string as_of_the_future(const std::string& text) {
  auto value = json::parse(text);
  value["format"] = 99;
  return value.dump();
}

TEST(Formats, TheFirstLaunchSpecIsRead) {
  const auto spec = decode_launch_spec(kept("running-launch.json"));
  ASSERT_TRUE(spec) << to_string(spec.error());
  EXPECT_EQ(spec->task_id, "216d6da2c852");
  EXPECT_EQ(spec->runtime, "/usr/sbin/runc");
  EXPECT_EQ(spec->grace, std::chrono::seconds(3));
  EXPECT_EQ(spec->devices.size(), 4U);
  EXPECT_EQ(spec->volumes.size(), 1U);
}

TEST(Formats, TheFirstStatusIsRead) {
  const auto running = decode_status(kept("running-status.json"));
  ASSERT_TRUE(running) << to_string(running.error());
  EXPECT_EQ(running->running->pid, 23893);
  const auto ended = decode_status(kept("ended-status.json"));
  ASSERT_TRUE(ended) << to_string(ended.error());
  EXPECT_EQ(ended->ending->exit_status, 3);
}

TEST(Formats, HowATaskEndedIsReadBesideWhatANewerDroverAdds) {
  auto value = json::parse(kept("ended-status.json"));
  value["later"] = 1;
  value["ending"]["later"] = {1, 2};
  const auto ended = decode_status(value.dump());
  ASSERT_TRUE(ended) << to_string(ended.error());
  EXPECT_EQ(ended->ending->exit_status, 3);
}

TEST(Formats, WhatIsToBeDoneIsDoneWholeOrNotAtAll) {
  auto value = json::parse(kept("running-launch.json"));
  value["later"] = 1;
  EXPECT_FALSE(decode_launch_spec(value.dump()));
}

TEST(Formats, TheFirstSpecOfAFetcherIsRead) {
  const auto spec = decode_fetch_spec(kept("fetch-order.json"));
  ASSERT_TRUE(spec) << to_string(spec.error());
  EXPECT_EQ(spec->user.uid, 1000U);
  EXPECT_EQ(spec->files.at(0).uri, "https://example.org/model.tar.gz");
  EXPECT_EQ(spec->limits.download.window, std::chrono::seconds(60));
  EXPECT_EQ(json::parse(encode(*spec)).at("format"), 1);
}

TEST(Formats, ANewerFormatIsNotGuessedAt) {
  for (const auto& error : {decode_launch_spec(as_of_the_future(kept("running-launch.json"))).error(),
                            decode_status(as_of_the_future(kept("ended-status.json"))).error(),
                            decode_fetch_spec(as_of_the_future(kept("fetch-order.json"))).error()})
    EXPECT_THAT(error.message, HasSubstr("format 99 is a newer Drover's; this one knows 1"));
}

}  // namespace
}  // namespace drover::container
