#include "control/record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::control {
namespace {

using nlohmann::json;

/// As the daemon wrote it that knew neither shares nor gangs.
const char* const kOldRecord = R"({
  "task": {"id": "0a1b", "name": "train", "command": ["true"], "env": {}, "working_directory": "", "owner": 1000,
           "user": {"uid": 1000, "gid": 1000, "groups": [], "name": "alice", "home": "/home/alice"},
           "read_only": false, "gpus": 2, "cpus": 1.0, "memory": 1073741824, "grace_ms": 10000, "labels": {}},
  "sequence": 7, "state": "running", "gpus": ["GPU-a", "GPU-b"], "reason": "", "stop_requested": false,
  "timed_out": false, "submitted_at": "2018-03-05T23:00:00.000Z", "started_at": "2018-03-05T23:00:01.000Z"})";

TEST(Record, OfAnOlderDaemonHasWholeGpus) {
  const auto record = decode_record(json::parse(kOldRecord));
  ASSERT_TRUE(record) << to_string(record.error());
  EXPECT_EQ(record->gpus, (std::vector<placement::Grant>{{"GPU-a", 1000, 0}, {"GPU-b", 1000, 0}}));
  EXPECT_EQ(record->task.resources.gpu_count(), 2);
  EXPECT_EQ(record->task.queue, "default");
  EXPECT_EQ(record->task.owner_name, "alice");
  EXPECT_EQ(record->preemptions, 0);
  EXPECT_EQ(decode_record(encode(*record)).value(), *record);
}

TEST(Record, ReadsBackWhatItWrites) {
  auto record = decode_record(json::parse(kOldRecord)).value();
  record.gpus = {{"GPU-a", 250, 4ULL << 30}};
  record.cpus = {0, 1, 8};
  record.nics = {"mlx5_0"};
  record.gang_port = 31007;
  record.gang_reason = "rank 2 of its gang: exited with status 3";
  record.preempted = true;
  record.preemptions = 3;
  record.task.gang = workload::GangMembership{"0a1b", 1, 4, workload::Arrangement::kSpread};
  EXPECT_EQ(decode_record(encode(record)).value(), record);
}

TEST(Record, KeepsWhatWasUsed) {
  auto record = decode_record(json::parse(kOldRecord)).value();
  record.use = workload::Use{.seconds = 3600.5,
                             .gpus = 2,
                             .gpu_percent_mean = 12.345,
                             .gpu_seconds_used = 888.888,
                             .memory_bytes_max = 1ULL << 40,
                             .disk_read_bytes = 0};
  EXPECT_EQ(decode_record(encode(record)).value(), record);
  const auto use = encode(record).at("use");
  EXPECT_EQ(use.at("advice"), "mean GPU use 12 % over 2 GPUs: would fewer do?");
  EXPECT_FALSE(use.contains("cpu_seconds"));
}

TEST(Record, OfATaskWithAPart) {
  auto record = decode_record(json::parse(kOldRecord)).value();
  record.task.resources.part = "3g.20gb";
  record.task.resources.share = workload::share_of_part("3g.20gb").value();
  record.gpus = {{"GPU-a", 428, 20ULL << 30, placement::MigGrant{"3g.20gb", 9, {4, 4}}},
                 {"GPU-a", 428, 20ULL << 30, placement::MigGrant{"3g.20gb", 9, {0, 4}, "MIG-1"}}};
  EXPECT_EQ(decode_record(encode(record)).value(), record);
  EXPECT_EQ(encode(record).at("grants").at(1).at("tier"), "hard");
  EXPECT_EQ(encode(record).at("task").at("gpu_part"), "3g.20gb");
}

TEST(Record, IsWrittenWithItsFieldsByName) {
  auto record = decode_record(json::parse(kOldRecord)).value();
  record.gpus = {{"GPU-a", 250, 4096}};
  record.cpus = {0, 8};
  record.ports = {31000};
  record.gang_port = 31007;
  record.reason = "r";
  record.stop_reason = "s";
  record.unhealthy = "u";
  record.overdrawn = "o";
  record.overran = "r";
  record.gang_reason = "g";
  record.exit_status = 3;
  record.finished_at = record.submitted_at;
  auto held = record;
  held.task.batch = {.after = {{"0f3a"}},
                     .begin = record.submitted_at,
                     .retries = 3,
                     .requeue = workload::Requeue::kLost,
                     .array = workload::ArrayMembership{"a", 1, 2, 1}};
  held.awaits = held.task.batch.after;
  held.not_before = held.retry_at = record.submitted_at;
  held.failures = 2;
  held.tries_again = true;
  held.cause = Cause::kOutOfMemory;
  EXPECT_EQ(text_of(held), json::parse(text_of(held)).dump());
  EXPECT_EQ(decode_record(json::parse(text_of(held))).value(), held);
  const auto text = text_of(record);
  EXPECT_EQ(text, json::parse(text).dump());  // which sorts
  const std::string begin =
      R"({"cpus":[0,8],"exit_status":3,"finished_at":"2018-03-05T23:00:00.000Z","gang_port":31007,)"
      R"("gang_reason":"g","gpus":["GPU-a"],"grants":[{"gpu":"GPU-a","memory":4096,"milli":250,"tier":"counted"}],"nics":[],)"
      R"("overdrawn":"o","overran":"r","ports":[31000],"preempted":false,"preemptions":0,"reason":"r","sequence":7,)"
      R"("started_at":"2018-03-05T23:00:01.000Z","state":"running","stop_reason":"s","stop_requested":false,)"
      R"("submitted_at":"2018-03-05T23:00:00.000Z","task":{)";
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  const std::string end = R"(},"timed_out":false,"unhealthy":"u"})";
  EXPECT_TRUE(text.ends_with(end)) << text;
  EXPECT_EQ(decode_record(json::parse(text)).value(), record);
}

TEST(Record, DamageIsNamed) {
  auto damaged = json::parse(kOldRecord);
  damaged["grants"] = {{{"gpu", "GPU-a"}, {"milli", 2000}}};
  EXPECT_FALSE(decode_record(damaged));
  damaged = json::parse(kOldRecord);
  damaged["cpus"] = {"zero"};
  EXPECT_FALSE(decode_record(damaged));
}

}  // namespace
}  // namespace drover::control
