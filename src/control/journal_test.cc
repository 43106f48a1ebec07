#include "control/journal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "control/testing/journal.h"
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
  const auto read = testing::decode_journal(entries);
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
  EXPECT_FALSE(testing::decode_journal(entries)) << "nobody gets past a quota by it";
}

/// As daemons of the first format wrote it: `file` is of tests/data/formats/1.
std::map<std::string, std::string> first_journal(const std::string& file = "journal.jsonl") {
  std::map<std::string, std::string> entries;
  std::istringstream lines(read_file(DROVER_SOURCE_DIR "/tests/data/formats/1/" + file).value());
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    entries[row.at("key")] = row.at("text");
  }
  return entries;
}

TEST(JournalEntries, OfTheFirstFormatAreRead) {
  const auto read = testing::decode_journal(first_journal());
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

TEST(JournalEntries, OfTheFirstFormatWithATemplateAreRead) {
  const auto read = testing::decode_journal(first_journal("templates.jsonl"));
  ASSERT_TRUE(read) << to_string(read.error());
  for (const auto& error : read->unread) ADD_FAILURE() << to_string(error);
  ASSERT_EQ(read->records.size(), 2u);
  for (const auto& record : read->records) {
    EXPECT_EQ(record.task.gang->size, 2);
    EXPECT_EQ(record.task.environment.at("FILL").size(), 4100u);
    EXPECT_EQ(template_key_of(record.task), record.template_key);
  }
}

TEST(JournalEntries, OfTheFirstFormatLoseNothingWhenTheyAreWrittenAgain) {
  const auto before = first_journal();
  auto read = testing::decode_journal(before).value();
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
      // Once told of every share, and never read: what holds a share is its tier now.
      EXPECT_TRUE(place.ends_with("/gpu_share/enforced") || (now.contains(place) && now.at(place) == value))
          << key << place;
  }
}

/// What a journal holds after each event.
struct JournaledMachine {
  Machine machine{4};
  std::map<std::string, std::string> journal;

  Outcome on(const Event& event) {
    auto outcome = decide(machine.state, event, testing::kNow).value();
    const auto changes = changes_of(outcome);
    for (const auto& [key, text] : changes.put) journal[key] = text;
    for (const auto& key : changes.removed) journal.erase(key);
    apply(machine.state, outcome);
    return outcome;
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& [key, text] : journal) sum += text.size();
    return sum;
  }
  std::vector<std::string> templates() const {
    std::vector<std::string> keys;
    for (const auto& [key, text] : journal)
      if (key.starts_with("/template:")) keys.push_back(key);
    return keys;
  }
};

workload::Task with_environment(workload::Task task, std::size_t bytes) {
  task.environment = {{"FILL", std::string(bytes, 'x')}};
  return task;
}

TEST(JournalEntries, WhatTheMembersOfAGangHaveInCommonIsKeptOnce) {
  constexpr std::size_t kBytes = 100'000;
  JournaledMachine keeper;
  auto members = testing::gang("g", 100, 0);
  for (auto& member : members) {
    member = with_environment(member, kBytes);
    member.resources.milli_cpus = 1;
  }
  keeper.on(event::Submitted{members});
  EXPECT_LT(keeper.bytes(), 2 * kBytes);
  ASSERT_EQ(keeper.templates().size(), 1u);
  const auto& added = keeper.machine.state.tasks;
  EXPECT_TRUE(added.at("g-0").task.environment.is_one_with(added.at("g-99").task.environment));
  const auto changes = changes_of(keeper.on(event::Started{"g-7", testing::kNow, std::nullopt, ""}));
  for (const auto& [key, text] : changes.put) EXPECT_LT(text.size(), kBytes / 10) << key;

  const auto restored =
      restore(testing::decode_journal(keeper.journal).value(), keeper.machine.state.machine());
  EXPECT_EQ(restored.tasks, keeper.machine.state.tasks);
  const auto& first = restored.tasks.at("g-0").task;
  EXPECT_EQ(first.environment.at("FILL").size(), kBytes);
  for (const auto& [id, record] : restored.tasks)
    EXPECT_TRUE(record.task.environment.is_one_with(first.environment)) << id << ": once in memory, too";
}

TEST(JournalEntries, ATemplateStaysAsLongAsATaskHasIt) {
  JournaledMachine keeper;
  for (const char* id : {"a", "b"})
    keeper.on(event::Submitted{{with_environment(testing::task(id, 0), 5000)}});
  keeper.on(event::Submitted{{with_environment(testing::task("small", 0), 50)}});
  ASSERT_EQ(keeper.templates().size(), 1u);
  for (const char* id : {"a", "b"}) {
    ASSERT_EQ(keeper.templates().size(), 1u) << id << " has it";
    keeper.on(event::Ended{id, testing::exited(0)});
    keeper.on(event::RemoveRequested{id});
  }
  EXPECT_TRUE(keeper.templates().empty());
}

TEST(JournalEntries, ATaskWhoseTemplateIsGoneOrDamagedIsKeptAndTold) {
  JournaledMachine keeper;
  keeper.on(event::Submitted{{with_environment(testing::task("a", 0), 5000)}});
  const auto key = keeper.templates().at(0);
  auto journal = keeper.journal;
  journal.erase(key);
  auto read = testing::decode_journal(journal).value();
  ASSERT_EQ(read.unread.size(), 1u);
  EXPECT_TRUE(read.unread[0].message.starts_with("task 'a'")) << read.unread[0].message;
  EXPECT_TRUE(read.records.empty()) << "nothing is run in part";

  // Whoever needs it next writes it anew, which mends the first one too.
  JournaledMachine again;
  again.journal = journal;
  again.machine.state = restore(testing::decode_journal(journal).value(), again.machine.state.machine());
  again.on(event::Submitted{{with_environment(testing::task("other", 0), 5000)}});
  EXPECT_EQ(again.templates(), std::vector{key});
  read = testing::decode_journal(again.journal).value();
  EXPECT_TRUE(read.unread.empty());
  EXPECT_EQ(read.records.size(), 2u);

  // One that a newer Drover wrote: its template stays, though a task of ours that had it goes.
  journal = keeper.journal;
  auto newer = nlohmann::json::parse(journal.at("a"));
  newer["state"] = "hibernating";
  journal["b"] = newer.dump();
  keeper.machine.state = restore(testing::decode_journal(journal).value(), keeper.machine.state.machine());
  keeper.journal = journal;
  keeper.on(event::Ended{"a", testing::exited(0)});
  keeper.on(event::RemoveRequested{"a"});
  EXPECT_EQ(keeper.templates(), std::vector{key});
}

}  // namespace
}  // namespace drover::control
