#include "control/journal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using testing::Machine;
using testing::task;

std::map<std::string, std::string> entries_of(const Outcome& outcome) {
  const auto changes = changes_of(outcome);
  return {changes.put.begin(), changes.put.end()};
}

TEST(JournalEntries, OneThatCannotBeReadKeepsNoOtherFromBeingRead) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("a", 1)));
  Outcome outcome;
  outcome.changed = {machine.record("a")};
  auto entries = entries_of(outcome);
  for (const auto& [key, text] : {std::pair("b", "{"), std::pair("c", R"({"task": 7})"),
                                  std::pair("/from-the-future/x", "{}"), std::pair("/services/y", "[]")})
    entries[key] = text;
  const auto read = decode_journal(entries);
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->records.size(), 1u);
  EXPECT_EQ(read->records[0].task.id, "a");
  ASSERT_EQ(read->unread.size(), 4u);
  EXPECT_TRUE(read->unread[0].message.starts_with("the entry '/from-the-future/x'"))
      << read->unread[0].message;
  EXPECT_EQ(restore(*read, machine.state.machine()).unread.size(), 4u);
}

TEST(JournalEntries, RulesThatCannotBeReadAreAnError) {
  Outcome outcome;
  outcome.rules = placement::Rules();
  auto entries = entries_of(outcome);
  ASSERT_EQ(entries.size(), 1u);
  entries.begin()->second = R"({"queues": 3})";
  EXPECT_FALSE(decode_journal(entries)) << "nobody gets past a quota by it";
}

/// As a daemon of the first format wrote it.
std::map<std::string, std::string> first_journal() {
  std::map<std::string, std::string> entries;
  std::istringstream lines(read_file(DROVER_SOURCE_DIR "/tests/data/formats/1/journal.jsonl").value());
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    entries[row.at("key")] = row.at("text");
  }
  return entries;
}

TEST(JournalEntries, OfTheFirstFormatAreRead) {
  const auto read = decode_journal(first_journal());
  ASSERT_TRUE(read) << to_string(read.error());
  for (const auto& error : read->unread) ADD_FAILURE() << to_string(error);
  EXPECT_EQ(read->records.size(), 17u);
  EXPECT_EQ(read->next_sequence, 18u);
  EXPECT_EQ(read->rules.queues.at("research").weight, 2);
  EXPECT_EQ(read->rules.quotas.size(), 1u);
  EXPECT_EQ(read->services.at("/shop/front").target.instances, 2);
  EXPECT_EQ(read->groups.size(), 1u);
  EXPECT_EQ(read->deployments.size(), 1u);
  EXPECT_EQ(read->frameworks.begin()->second.name, "test");
  EXPECT_EQ(read->framework_tasks.begin()->second.task_id, "ft");
  EXPECT_EQ(read->schedules.at("nightly").successes, 1u);
}

TEST(JournalEntries, OfTheFirstFormatLoseNothingWhenTheyAreWrittenAgain) {
  const auto before = first_journal();
  auto read = decode_journal(before).value();
  Outcome outcome;
  outcome.changed = read.records;
  outcome.rules = read.rules;
  outcome.added = true;
  each_table([](const char*, auto& changes, const auto& rows) { changes.insert(rows.begin(), rows.end()); },
             static_cast<Tables<Changes>&>(outcome), static_cast<const Tables<Rows>&>(read));
  const auto after = entries_of(outcome);
  for (const auto& [key, text] : before) {
    ASSERT_TRUE(after.contains(key)) << key;
    const auto now = nlohmann::json::parse(after.at(key)).flatten();
    const auto then = nlohmann::json::parse(text).flatten();
    for (const auto& [place, value] : then.items())
      EXPECT_TRUE(now.contains(place) && now.at(place) == value) << key << place;
  }
}

}  // namespace
}  // namespace drover::control
