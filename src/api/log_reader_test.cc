#include "api/log_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include "api/testing/fake_daemon.h"

namespace drover::api {
namespace {

class LogReaderTest : public ::testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream(folder_.path() + "/stdout", std::ios::app | std::ios::binary) << text;
  }
  void rotate(int files = 4) {
    const auto name = [this](int number) {
      return folder_.path() + "/stdout" + (number == 0 ? "" : fmt::format(".{}", number));
    };
    for (int number = files - 1; number > 0; --number)
      ::rename(name(number - 1).c_str(), name(number).c_str());
    append("");
  }
  LogReader reader() { return {folder_.path(), "stdout", user_of(::geteuid(), ::getegid()).value()}; }
  static std::string read_all(LogReader& reader) {
    std::string all;
    for (auto piece = reader.read().value(); !piece.empty(); piece = reader.read().value()) all += piece;
    return all;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(LogReaderTest, NothingYetIsNotAnError) {
  auto logs = reader();
  EXPECT_EQ(read_all(logs), "");
  append("late");
  EXPECT_EQ(read_all(logs), "late");
}

TEST_F(LogReaderTest, ReadsWhatIsAddedAcrossRotations) {
  auto logs = reader();
  append("one ");
  EXPECT_EQ(read_all(logs), "one ");
  append("two ");
  rotate();
  append("three ");
  rotate();
  append("four");
  EXPECT_EQ(read_all(logs), "two three four");
  EXPECT_EQ(read_all(logs), "");
}

TEST_F(LogReaderTest, BeginsWithTheOldestFile) {
  append("a");
  rotate();
  append("b");
  rotate();
  append("c");
  auto logs = reader();
  EXPECT_EQ(logs.pending().value(), 3u);
  EXPECT_EQ(read_all(logs), "abc");
  EXPECT_EQ(logs.pending().value(), 0u);
}

TEST_F(LogReaderTest, AnotherReaderGoesOnFromAPosition) {
  append("read before");
  auto first = reader();
  EXPECT_EQ(read_all(first), "read before");
  append(", and after");
  rotate();
  append(" the rotation");
  auto second = reader();
  second.seek(first.position());
  EXPECT_EQ(second.pending().value(), 24u);
  EXPECT_EQ(read_all(second), ", and after the rotation");
}

TEST_F(LogReaderTest, AFileThatGoesBeforeAnythingIsInItMovesNobody) {
  append("read before");
  auto logs = reader();
  EXPECT_EQ(read_all(logs), "read before");
  rotate();
  EXPECT_EQ(read_all(logs), "");
  ASSERT_EQ(::unlink((folder_.path() + "/stdout").c_str()), 0);
  std::ofstream(folder_.path() + "/other");  // takes the inode
  append(", and after");
  EXPECT_EQ(read_all(logs), ", and after");
}

TEST_F(LogReaderTest, AFileThatItsTaskCutsOffIsReadFromItsBeginning) {
  append("old");
  rotate();
  append("long before");
  auto logs = reader();
  EXPECT_EQ(read_all(logs), "oldlong before");
  ASSERT_EQ(::truncate((folder_.path() + "/stdout").c_str(), 0), 0);
  EXPECT_EQ(read_all(logs), "");
  append("new");
  EXPECT_EQ(read_all(logs), "new");
  ASSERT_EQ(::truncate((folder_.path() + "/stdout").c_str(), 1), 0);
  EXPECT_EQ(read_all(logs), "n");
}

TEST_F(LogReaderTest, APositionThatIsGoneBeginsWithTheOldest) {
  append("all");
  auto logs = reader();
  logs.seek({1, 999});
  EXPECT_EQ(read_all(logs), "all");
}

TEST_F(LogReaderTest, TailCountsLinesAcrossFiles) {
  append("1\n2\n3\n");
  rotate();
  append("4\n5");
  const auto tail = [this](std::int64_t lines) {
    auto logs = reader();
    EXPECT_TRUE(logs.seek_tail(lines));
    return read_all(logs);
  };
  EXPECT_EQ(tail(0), "");
  EXPECT_EQ(tail(1), "5");
  EXPECT_EQ(tail(2), "4\n5");
  EXPECT_EQ(tail(3), "3\n4\n5");
  EXPECT_EQ(tail(99), "1\n2\n3\n4\n5");
}

TEST_F(LogReaderTest, TheTailOfAFileWithoutLinesIsWhatMayBeReadOfIt) {
  append("first\n");
  ASSERT_EQ(::truncate((folder_.path() + "/stdout").c_str(), 10LL << 40), 0);  // with nothing in it
  append("\nlast");
  auto logs = reader();
  ASSERT_TRUE(logs.seek_tail(1));
  EXPECT_EQ(logs.read().value(), "last");
  ASSERT_TRUE(logs.seek_tail(2));
  EXPECT_EQ(logs.pending().value(), LogReader::kMostTail);
}

TEST_F(LogReaderTest, TheTailOfManyFilesWithoutLinesIsNoLonger) {
  for (int i = 0; i < 3; ++i) {
    append("line\n");
    ASSERT_EQ(::truncate((folder_.path() + "/stdout").c_str(), LogReader::kMostTail / 2), 0);
    rotate();
  }
  auto logs = reader();
  ASSERT_TRUE(logs.seek_tail(99));
  EXPECT_EQ(logs.pending().value(), LogReader::kMostTail);
}

TEST_F(LogReaderTest, ALinkInTheWayIsNotFollowedOut) {
  ASSERT_EQ(::symlink("/etc/passwd", (folder_.path() + "/stdout").c_str()), 0);
  auto logs = reader();
  EXPECT_EQ(read_all(logs), "");
}

TEST_F(LogReaderTest, NothingIsLostOrDoubledWhateverTheOrder) {
  EXPECT_TRUE(rc::check("reads, writes, rotations and new readers in any order", [this] {
    for (const auto* name : {"/stdout", "/stdout.1", "/stdout.2", "/stdout.3"})
      ::unlink((folder_.path() + name).c_str());
    std::string written;
    std::string seen;
    auto logs = reader();
    int unread_rotations = 0;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
    for (const int step : steps) {
      if (step == 0) {
        const auto line = fmt::format("line {}\n", written.size());
        append(line);
        written += line;
      } else if (step == 1 && unread_rotations < 3 && !written.empty()) {
        rotate();
        ++unread_rotations;
      } else if (step == 2) {
        seen += read_all(logs);
        unread_rotations = 0;
      } else if (step == 3) {
        const auto position = logs.position();
        logs = reader();
        logs.seek(position);
      }
    }
    seen += read_all(logs);
    RC_ASSERT(seen == written);
  }));
}

}  // namespace
}  // namespace drover::api
