#include "cli/sharing_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const json kNodes = {
    {{"gpus", {{"total", 8}}}, {"cpus", {{"total", 16.0}}}, {"memory_bytes", {{"total", 64ULL << 30}}}}};

json queue_with(const json& guarantee) {
  return {{"queue", "vision"}, {"guarantee", guarantee}, {"limit", json::object()}, {"weight", 2}};
}

TEST(SharingNotes, TellsWhatAQueueIsNow) {
  EXPECT_EQ(queue_line(queue_with({{"gpus", 6}})), "vision: guarantee 6 GPUs, limit -, weight 2, users all");
}

TEST(SharingNotes, TellsWhatAQuotaIsNow) {
  EXPECT_EQ(quota_line({{"user", "ann"}, {"limit", {{"gpus", 1}}}, {"max_priority", 3}}),
            "user:ann: limit 1 GPU, highest priority 3");
  EXPECT_EQ(quota_line({{"namespace", "interns"}, {"limit", nullptr}}), "namespace:interns: limit -");
}

TEST(SharingNotes, AGuaranteeAboveTheMachineIsTold) {
  EXPECT_THAT(guarantees_too_large(queue_with({{"gpus", 8}, {"cpus", 16}}), kNodes), IsEmpty());
  EXPECT_THAT(
      guarantees_too_large(queue_with({{"gpus", 9}, {"memory", 65ULL << 30}}), kNodes),
      ElementsAre("The guarantee of 'vision' cannot be kept: 9 GPUs of it, and the machine has 8 GPUs",
                  "The guarantee of 'vision' cannot be kept: 65 GiB of it, and the machine has 64 GiB"));
}

TEST(SharingNotes, AUserWhoIsNotThereIsTold) {
  EXPECT_THAT(unknown_users({"root", "no-such-user-here"}),
              ElementsAre("There is no user 'no-such-user-here' on this machine yet"));
}

}  // namespace
}  // namespace drover::cli
