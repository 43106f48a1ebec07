#include "control/journal.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace drover::control
