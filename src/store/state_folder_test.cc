#include "store/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "store/testing/entries.h"

namespace drover::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;
using testing::Entries;

class StateFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "drover-folder-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (const char* name : {"here", "there"}) fs::create_directory(folder_ / name);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A daemon's life, in which it writes this; what people are told at its start.
  std::vector<std::string> live(const std::string& name, const std::string& key = "a") {
    auto journal = Journal::open(file(name));
    EXPECT_TRUE(journal) << to_string(journal.error());
    auto joined = join(*journal, folder_ / name);
    EXPECT_TRUE(joined) << to_string(joined.error());
    EXPECT_TRUE(journal->commit({{{key, name}}, {}}));
    if (!joined) return {"refused"};
    id_ = std::move(joined->id);
    return std::move(joined->news);
  }
  std::string file(const std::string& name) const { return journal_file(folder_ / name); }
  Entries entries(const std::string& name) const { return *testing::entries_of(*Journal::open(file(name))); }

  fs::path folder_;
  std::string id_;  ///< what the last life was known by
};

TEST_F(StateFolderTest, ItsOwnJournalIsNoNews) {
  EXPECT_THAT(live("here"), IsEmpty());
  EXPECT_THAT(live("here"), IsEmpty());
}

TEST_F(StateFolderTest, HasAnIdOfItsOwnThatIsKept) {
  live("here");
  const auto first = id_;
  EXPECT_EQ(first.size(), 32U);
  live("here");
  EXPECT_EQ(id_, first);
  fs::remove(folder_ / "here/journal.id");
  live("here");
  EXPECT_EQ(id_, first);
  live("there");
  EXPECT_NE(id_, first);
}

TEST_F(StateFolderTest, AJournalOfAnotherFolderIsRefused) {
  live("here");
  live("there");
  fs::copy_file(file("there"), file("here"), fs::copy_options::overwrite_existing);
  auto journal = Journal::open(file("here"));
  ASSERT_TRUE(journal);
  const auto news = join(*journal, folder_ / "here");
  ASSERT_FALSE(news);
  EXPECT_EQ(news.error().kind, ErrorKind::kConflict);
}

TEST_F(StateFolderTest, AnOlderOrANewJournalIsTold) {
  live("here");
  fs::copy_file(file("here"), folder_ / "old");
  live("here");
  live("here");
  fs::copy_file(folder_ / "old", file("here"), fs::copy_options::overwrite_existing);
  EXPECT_THAT(live("here"), ElementsAre(HasSubstr("older than its folder")));
  EXPECT_THAT(live("here"), IsEmpty());
  fs::remove(file("here"));
  EXPECT_THAT(live("here"), ElementsAre(HasSubstr("is new")));
}

TEST_F(StateFolderTest, AFolderThatLostItsMarkTakesThatOfItsJournal) {
  live("here");
  for (const char* text : {"", "garbage", "\xff\xff 1 2 3"}) {
    fs::remove(folder_ / "here/journal.id");
    if (*text != 0) std::ofstream(folder_ / "here/journal.id") << text;
    auto journal = Journal::open(file("here"));
    const auto news = join(*journal, folder_ / "here");
    EXPECT_EQ(news.has_value(), *text == 0) << "another mark is that of another journal";
  }
}

TEST_F(StateFolderTest, ABackupIsRestoredAndWhatWasThereKept) {
  live("here", "first");
  fs::copy_file(file("here"), folder_ / "backup");
  live("here", "second");
  const auto aside = restore(folder_ / "here", folder_ / "backup", false);
  ASSERT_TRUE(aside) << to_string(aside.error());
  EXPECT_EQ(entries("here"), (Entries{{"first", "here"}}));
  EXPECT_EQ(*testing::entries_of(*Journal::open(*aside)), (Entries{{"first", "here"}, {"second", "here"}}));
  EXPECT_THAT(live("here"), ElementsAre(HasSubstr("restored")));
  EXPECT_THAT(live("here"), IsEmpty());
  const auto again = restore(folder_ / "here", folder_ / "backup", false);
  ASSERT_TRUE(again);
  EXPECT_NE(*again, *aside) << "nothing that was kept is written over";
  struct stat info{};
  ASSERT_EQ(::stat(file("here").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(StateFolderTest, RestoresIntoAFolderThatIsNotThere) {
  live("here");
  const auto aside = restore(folder_ / "new/state", file("here"), false);
  ASSERT_TRUE(aside) << to_string(aside.error());
  EXPECT_EQ(*aside, "");
  EXPECT_EQ(entries("new/state"), (Entries{{"a", "here"}}));
}

TEST_F(StateFolderTest, ABackupOfAnotherFolderIsTakenOnlyByForce) {
  live("here");
  live("there");
  const auto refused = restore(folder_ / "here", file("there"), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(entries("here"), (Entries{{"a", "here"}}));
  ASSERT_TRUE(restore(folder_ / "here", file("there"), true));
  EXPECT_EQ(entries("here"), (Entries{{"a", "there"}}));
  EXPECT_THAT(live("here"), ElementsAre(HasSubstr("restored")));
}

TEST_F(StateFolderTest, WhatIsNoBackupIsRefusedAndChangesNothing) {
  live("here");
  std::ofstream(folder_ / "empty").close();
  std::ofstream(folder_ / "garbage") << std::string(8192, 'x');
  fs::create_directory(folder_ / "folder");
  for (const char* name : {"empty", "garbage", "folder", "absent"}) {
    const auto refused = restore(folder_ / "here", folder_ / name, true);
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().message, HasSubstr((folder_ / name).string()));
  }
  EXPECT_EQ(entries("here"), (Entries{{"a", "here"}}));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_ / "here")) left.push_back(entry.path().filename());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("journal.id", "state.db"));
}

TEST_F(StateFolderTest, ADamagedJournalMakesWay) {
  live("here");
  fs::copy_file(file("here"), folder_ / "backup");
  std::ofstream(file("here")) << std::string(8192, 'x');
  std::ofstream(file("here") + "-wal") << "a log";
  const auto aside = restore(folder_ / "here", folder_ / "backup", false);
  ASSERT_TRUE(aside) << to_string(aside.error());
  EXPECT_EQ(entries("here"), (Entries{{"a", "here"}}));
  EXPECT_TRUE(fs::exists(*aside));
  EXPECT_TRUE(fs::exists(*aside + "-wal")) << "evidence is kept whole";
}

TEST_F(StateFolderTest, AJournalInUseIsLeftAlone) {
  live("here");
  fs::copy_file(file("here"), folder_ / "backup");
  auto used = Journal::open(file("here"));
  ASSERT_TRUE(used);
  const auto refused = restore(folder_ / "here", folder_ / "backup", true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_TRUE(used->commit({{{"b", "here"}}, {}}));
}

}  // namespace
}  // namespace drover::store
