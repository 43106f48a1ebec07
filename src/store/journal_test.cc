#include "store/journal.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "store/testing/entries.h"

namespace drover::store {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "drover-journal-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return folder_ / "state.db"; }
  static std::vector<Event> events(std::uint64_t first, int count) {
    std::vector<Event> events(static_cast<std::size_t>(count));
    for (auto& event : events) {
      event.number = first++;
      event.owner = 7;
      event.steady = event.at = TimePoint(std::chrono::milliseconds(event.number));
      event.kind = "task_running";
      event.message = "it happened";
      event.facts = "{}";
    }
    return events;
  }
  static std::vector<std::uint64_t> numbers(const Journal& journal, const EventRange& range) {
    std::vector<std::uint64_t> numbers;
    EXPECT_TRUE(journal.visit_events(range, 1000, [&](const Event& event) {
      numbers.push_back(event.number);
      return true;
    }));
    return numbers;
  }

  std::filesystem::path folder_;
};

TEST_F(JournalTest, KeepsWhatWasCommitted) {
  {
    auto journal = Journal::open(file());
    ASSERT_TRUE(journal) << to_string(journal.error());
    ASSERT_TRUE(journal->commit({{{"a", "1"}, {"b", "2"}}, {}}));
    ASSERT_TRUE(journal->commit({{{"a", "3"}, {"c", "4"}, {"d", "5"}}, {}}));
    ASSERT_TRUE(journal->commit({{}, {"b", "c", "never-there", "d"}}));
  }
  auto journal = Journal::open(file());
  ASSERT_TRUE(journal);
  EXPECT_EQ(*testing::entries_of(*journal), (std::map<std::string, std::string>{{"a", "3"}}));
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(JournalTest, OneDaemonAtATime) {
  const auto first = Journal::open(file());
  ASSERT_TRUE(first);
  const auto second = Journal::open(file());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kConflict);
}

TEST_F(JournalTest, RefusesDamagedAndForeignFiles) {
  std::ofstream(file()) << std::string(8192, 'x');
  const auto garbage = Journal::open(file());
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(garbage.error().hint, kDamagedHint);
  EXPECT_EQ(std::filesystem::file_size(file()), 8192u) << "a damaged file is left as it is";
}

TEST_F(JournalTest, RefusesAFileThatIsDamagedInside) {
  {
    auto journal = Journal::open(file());
    ASSERT_TRUE(journal);
    Changes changes;
    for (int i = 0; i < 500; ++i) changes.put.emplace_back("key" + std::to_string(i), std::string(300, 'v'));
    ASSERT_TRUE(journal->commit(changes));
  }
  std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(4096 + 100);
  damage << std::string(20'000, '\xff');
  damage.close();
  const auto reopened = Journal::open(file());
  ASSERT_FALSE(reopened);
  EXPECT_EQ(reopened.error().kind, ErrorKind::kCorrupt);
}

TEST_F(JournalTest, AFullDiskChangesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system needs root";
  if (::mount("drover", folder_.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "tmpfs cannot be mounted here";
  {
    auto journal = Journal::open(file());
    ASSERT_TRUE(journal) << to_string(journal.error());
    ASSERT_TRUE(journal->commit({{{"kept", "yes"}}, {}}));
    const auto full = journal->commit({{{"big", std::string(1 << 20, 'x')}}, {}});
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().kind, ErrorKind::kExhausted) << to_string(full.error());
    EXPECT_EQ(*testing::entries_of(*journal), (std::map<std::string, std::string>{{"kept", "yes"}}));
    EXPECT_TRUE(journal->commit({{{"after", "works"}}, {}}));
  }
  ::umount(folder_.c_str());
}

TEST_F(JournalTest, ACopyOfTheFileAloneHasWhatWasTidied) {
  auto journal = Journal::open(file());
  ASSERT_TRUE(journal);
  for (const char* key : {"a", "b"}) {
    ASSERT_TRUE(journal->commit({{{key, "1"}}, {}}));
    ASSERT_TRUE(journal->tidy());
  }
  const auto copy = folder_ / "copy";
  std::filesystem::copy_file(file(), copy);
  EXPECT_EQ(*testing::entries_of(*Journal::open(copy)),
            (std::map<std::string, std::string>{{"a", "1"}, {"b", "1"}}));
}

TEST_F(JournalTest, IsCopiedWhileItIsWritten) {
  auto journal = Journal::open(file());
  ASSERT_TRUE(journal);
  Changes changes;
  for (int i = 0; i < 100; ++i) changes.put.emplace_back("key" + std::to_string(i), std::string(60'000, 'v'));
  ASSERT_TRUE(journal->commit(changes));
  auto copy = journal->copy();
  ASSERT_TRUE(copy) << to_string(copy.error());
  int steps = 0;
  for (auto complete = copy->step(); !*complete; complete = copy->step()) {
    ASSERT_TRUE(complete);
    ASSERT_TRUE(journal->commit({{{"step", std::to_string(++steps)}}, {"key" + std::to_string(steps)}}));
  }
  EXPECT_GT(steps, 2);
  const auto taken = copy->take();
  ASSERT_TRUE(taken);
  const auto kept = folder_ / "kept";
  std::filesystem::copy_file("/proc/self/fd/" + std::to_string(taken->get()), kept);
  EXPECT_EQ(*testing::entries_of(*Journal::open(kept)), *testing::entries_of(*journal));
  {
    auto abandoned = journal->copy();
  }
  {
    auto other = std::move(*copy);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_EQ(entry.path().filename().string().find(".copy"), std::string::npos) << entry.path();
}

// Whoever fills the disk cannot take the room that was taken ahead.
TEST_F(JournalTest, WritesOnOnAFullDisk) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system needs root";
  if (::mount("drover", folder_.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "tmpfs cannot be mounted here";
  {
    auto journal = Journal::open(file());
    ASSERT_TRUE(journal) << to_string(journal.error());
    Changes tasks;
    for (int i = 0; i < 50; ++i) tasks.put.emplace_back("task" + std::to_string(i), std::string(4000, 'r'));
    ASSERT_TRUE(journal->commit(tasks));
    ASSERT_TRUE(journal->tidy());
    std::ofstream filler(folder_ / "filler");
    while (filler << std::string(4096, 'x') << std::flush) {
    }
    for (int i = 0; i < 50; ++i) {
      const auto ended = journal->commit({{{"task" + std::to_string(i), std::string(4000, 'e')}}, {}});
      ASSERT_TRUE(ended) << i << ": " << to_string(ended.error());
      (void)journal->tidy();
    }
  }
  ::umount(folder_.c_str());
}

/// Old events make way for new ones: then the file need not grow, and what ends tasks can be written.
TEST_F(JournalTest, WritesEventsOnOnAFullDisk) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system needs root";
  if (::mount("drover", folder_.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "tmpfs cannot be mounted here";
  {
    auto journal = Journal::open(file());
    ASSERT_TRUE(journal) << to_string(journal.error());
    constexpr int kOld = 5000, kNew = 10'000, kPiece = 500;
    ASSERT_TRUE(journal->commit({}, events(1, kOld)));
    ASSERT_TRUE(journal->tidy());
    std::ofstream filler(folder_ / "filler");
    while (filler << std::string(4096, 'x') << std::flush) {
    }
    for (int i = 1; i <= kNew; ++i) {
      const auto ended = journal->commit({{{"task", std::to_string(i)}}, {}}, events(kOld + i, 1));
      ASSERT_TRUE(ended) << i << ": " << to_string(ended.error());
      if (i % (kPiece / 2) == 1) ASSERT_TRUE(journal->remove_events_before(TimePoint::max(), kPiece));
      if (i % 50 == 0) (void)journal->tidy();
    }
  }
  ::umount(folder_.c_str());
}

TEST_F(JournalTest, KeepsEventsInOrderAndOnlyWithWhatTheyTellOf) {
  {
    auto journal = Journal::open(file());
    ASSERT_TRUE(journal);
    EXPECT_EQ(*journal->last_event(), 0u);
    ASSERT_TRUE(journal->commit({{{"a", "1"}}, {}}, events(10, 5)));
    EXPECT_FALSE(journal->commit({{{"a", "2"}}, {}}, events(14, 1))) << "a number is given once";
    ASSERT_TRUE(journal->commit({}, events(20, 5)));
  }
  auto journal = Journal::open(file());
  EXPECT_EQ((*testing::entries_of(*journal))["a"], "1");
  EXPECT_EQ(*journal->last_event(), 24u);
  EXPECT_EQ(numbers(*journal, {}), (std::vector<std::uint64_t>{10, 11, 12, 13, 14, 20, 21, 22, 23, 24}));
  EXPECT_EQ(numbers(*journal, {.after = 13, .before = 21}), (std::vector<std::uint64_t>{14, 20}));
  EXPECT_EQ(numbers(*journal, {.before = 12, .newest_first = true}), (std::vector<std::uint64_t>{11, 10}));
  std::vector<Event> first;
  EXPECT_EQ(*journal->visit_events({}, 3, [&](const Event& event) { return first.push_back(event), false; }),
            1u);
  EXPECT_EQ(first[0].message, "it happened");
  EXPECT_EQ(first[0].facts, "{}");
  EXPECT_EQ(first[0].at, TimePoint(std::chrono::milliseconds(10)));

  EXPECT_EQ(*journal->remove_events_of(8, 10), EventCounts());
  EXPECT_EQ(*journal->remove_events_of(7, 2), (EventCounts{{7, 2}}));
  EXPECT_EQ(*journal->remove_events_before(TimePoint(std::chrono::milliseconds(14)), 1),
            (EventCounts{{7, 1}}));
  EXPECT_EQ(*journal->remove_events_before(TimePoint::max(), 100), (EventCounts{{7, 6}}));
  EXPECT_EQ(numbers(*journal, {}), std::vector<std::uint64_t>{24}) << "the last one stays";
}

/// As the version before made it, which then takes it back.
TEST_F(JournalTest, AFileWithoutEventsGetsThem) {
  ASSERT_TRUE(Journal::open(file())->commit({{{"a", "1"}}, {}}));
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "DROP TABLE event", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  auto journal = Journal::open(file());
  ASSERT_TRUE(journal) << to_string(journal.error());
  ASSERT_TRUE(journal->commit({}, events(1, 1)));
  EXPECT_EQ(*testing::entries_of(*journal), (std::map<std::string, std::string>{{"a", "1"}}));
  EXPECT_EQ(numbers(*journal, {}).size(), 1u);
}

Allocation allocation_of(std::int64_t owner, int minutes) {
  Allocation one;
  one.owner = owner;
  one.user = "ann";
  one.queue = "lab/a";
  one.task_id = std::to_string(minutes);
  one.attempt = 2;
  one.from = TimePoint(std::chrono::minutes(minutes));
  one.until = one.steady = one.from + std::chrono::minutes(1);
  one.gpus = "GPU-0=250";
  one.ending = "failed";
  one.cause = "exit";
  return one;
}

std::vector<Allocation> allocations_in(const Journal& journal, std::uint64_t after = 0,
                                       std::size_t most = 99) {
  std::vector<Allocation> all;
  EXPECT_TRUE(journal.visit_allocations(after, most, [&](const Allocation& one) { all.push_back(one); }));
  return all;
}

TEST_F(JournalTest, KeepsAllocationsWithWhatEndedThem) {
  auto measured = allocation_of(7, 1);
  measured.started = measured.from;
  measured.waited = std::chrono::seconds(3);
  measured.used = std::chrono::seconds(5);
  const std::vector<Allocation> both{measured, allocation_of(8, 2)};
  {
    auto journal = Journal::open(file());
    ASSERT_TRUE(journal->commit({{{"a", "1"}}, {}}, events(10, 1), both));
    EXPECT_FALSE(journal->commit({{{"a", "2"}}, {}}, events(10, 1), both)) << "all or nothing";
  }
  auto journal = Journal::open(file());
  auto kept = allocations_in(*journal);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(allocations_in(*journal, kept[0].number).size(), 1u);
  EXPECT_EQ(allocations_in(*journal, 0, 1).size(), 1u);
  for (auto& one : kept) one.number = 0;
  EXPECT_EQ(kept, both);
}

TEST_F(JournalTest, AllocationsOfWhoHasMostMakeWay) {
  auto journal = Journal::open(file());
  std::vector<Allocation> many{allocation_of(8, 0)};
  for (int i = 1; i <= 20; ++i) many.push_back(allocation_of(7, i));
  ASSERT_TRUE(journal->commit({}, {}, many));
  EXPECT_EQ(*journal->trim_allocations(TimePoint(), 21, 5), 0);
  EXPECT_EQ(*journal->trim_allocations(TimePoint(), 10, 5), 5);
  EXPECT_EQ(*journal->trim_allocations(TimePoint(), 10, 50), 6) << "no more than there are too many";
  auto kept = allocations_in(*journal);
  ASSERT_EQ(kept.size(), 10u);
  EXPECT_EQ(kept[0].owner, 8) << "though it is the oldest";
  EXPECT_EQ(kept[1].task_id, "12");
  EXPECT_EQ(*journal->trim_allocations(TimePoint(std::chrono::minutes(15)), 10, 50), 3)
      << "what ended before then goes, whosever it is";
}

// A commit that returned is there after kill -9, and none is there by half.
TEST_F(JournalTest, SurvivesKill) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto journal = Journal::open(file());
    for (int i = 0; journal; ++i) {
      const auto text = std::to_string(i);
      if (!journal->commit({{{"left", text}, {"right", text}}, {}})) break;
      if (::write(pipe[1], &i, sizeof i) != sizeof i) break;
    }
    ::_exit(1);
  }
  int last = -1;
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(::read(pipe[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[1]);
  int more = 0;
  while (::read(pipe[0], &more, sizeof more) == static_cast<ssize_t>(sizeof more)) last = more;
  ::close(pipe[0]);

  auto journal = Journal::open(file());
  ASSERT_TRUE(journal) << to_string(journal.error());
  auto entries = *testing::entries_of(*journal);
  EXPECT_EQ(entries["left"], entries["right"]);
  EXPECT_GE(std::stoi(entries["left"]), last);
}

}  // namespace
}  // namespace drover::store
