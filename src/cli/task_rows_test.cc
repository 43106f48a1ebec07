#include "cli/task_rows.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const TimePoint kNow = *parse_time("2026-11-26T12:00:00.000Z");

json ended(std::chrono::milliseconds ago) {
  return {{"state", "finished"}, {"finished_at", format_time(kNow - ago)}};
}

TEST(NoteOfRemovals, TellsOfThoseThatGoBeforeLong) {
  const auto week = std::chrono::days(7);
  const json running = {{"state", "running"}};
  EXPECT_EQ(note_of_removals({ended(24h), running}, week, kNow), "");
  EXPECT_EQ(
      note_of_removals({ended(24h), ended(6 * 24h + 1min), running}, week, kNow),
      "1 task will be forgotten within 1d 0h, with what it wrote: 'drover files get' brings it, 'drover "
      "show' says when");
  EXPECT_TRUE(note_of_removals({ended(31min), ended(40min)}, 40min, kNow).starts_with("2 tasks will be"));
  EXPECT_EQ(note_of_removals({ended(40min)}, 0ms, kNow), "") << "it is not known how long they are kept";
}

}  // namespace
}  // namespace drover::cli
