#include "api/merged_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "api/testing/fake_daemon.h"
#include "api/timed_lines.h"
#include "container/log_writer.h"

namespace drover::api {
namespace {

namespace fs = std::filesystem;
using container::LogLimits;
using container::LogWriter;
using container::OldLog;
using std::chrono::milliseconds;

const std::vector<std::string> kOutputs = {"stdout", "stderr"};
const engine::OutputTime kBegin{std::chrono::seconds(1'700'000'000)};

/// A task's folder with a shim's writers in it.
class ShimFolder {
 public:
  explicit ShimFolder(LogLimits limits = {}) : limits_(limits) {
    fs::create_directory(folder_.path() + "/sandbox");
    task_.reset(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    sandbox_fd_.reset(::open(sandbox().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    start(OldLog::kRemove);
  }

  std::string sandbox() const { return folder_.path() + "/sandbox"; }
  std::string record() const { return folder_.path() + "/" + container::kOutputRecord; }
  void start(OldLog old) {
    const auto recorder =
        std::make_shared<container::OutputRecorder>(task_.get(), limits_, old, [this] { return now; });
    writers_.clear();
    for (int stream = 0; stream < 2; ++stream) {
      writers_.push_back(LogWriter::create(sandbox_fd_.get(), kOutputs[static_cast<std::size_t>(stream)],
                                           ::getuid(), ::getgid(), limits_, old)
                             .value());
      writers_.back().record_in(recorder, stream);
    }
  }
  void write(int stream, const std::string& text) { writers_[static_cast<std::size_t>(stream)].append(text); }
  void out(const std::string& text) { write(0, text); }
  void err(const std::string& text) { write(1, text); }
  MergedOutput read(const std::vector<std::string>& streams = kOutputs, bool timed = true) const {
    return {sandbox(), streams, user_of(::geteuid(), ::getegid()).value(), timed};
  }

  engine::OutputTime now = kBegin;

 private:
  testing::TemporaryFolder folder_;
  LogLimits limits_;
  UniqueFd task_, sandbox_fd_;
  std::vector<LogWriter> writers_;
};

/// All that there is: of stdout as it is, of stderr in braces.
std::string told(MergedOutput& output) {
  std::string text;
  while (true) {
    const auto piece = output.peek().value();
    if (piece.bytes.empty()) return text;
    text +=
        output.name(piece.stream) == "stderr" ? fmt::format("{{{}}}", piece.bytes) : std::string(piece.bytes);
    output.take(piece, piece.bytes.size());
  }
}
std::string told(MergedOutput&& output) {
  return told(output);
}

TEST(MergedOutput, TellsBothInTheOrderInWhichTheyWereWritten) {
  ShimFolder task;
  task.out("one ");
  task.err("two ");
  task.out("three ");
  auto output = task.read();
  EXPECT_EQ(told(output), "one {two }three ");
  task.err("four ");
  task.out("five");
  EXPECT_EQ(told(output), "{four }five");
  EXPECT_EQ(told(output), "");
  EXPECT_EQ(told(task.read({"stderr"})), "{two }{four }");
}

TEST(MergedOutput, WithoutARecordOneComesAfterTheOther) {
  ShimFolder task;
  task.out("a\n");
  task.err("b\n");
  task.out("c\n");
  ASSERT_EQ(::unlink(task.record().c_str()), 0);
  auto output = task.read();
  EXPECT_FALSE(output.peek().value().at);
  EXPECT_EQ(told(output), "a\nc\n{b\n}");
  const auto refused = task.read().seek_since(TimePoint{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  EXPECT_TRUE(ShimFolder().read().seek_since(TimePoint{}));  // nothing was written: nothing is unknown
}

TEST(MergedOutput, WhatAnOlderShimWroteComesFirst) {
  ShimFolder task;
  task.out("old out\n");
  task.err("old err\n");
  ASSERT_EQ(::unlink(task.record().c_str()), 0);
  task.start(OldLog::kKeep);
  task.err("new err\n");
  task.out("new out\n");
  EXPECT_EQ(told(task.read()), "old out\n{old err\n}{new err\n}new out\n");
  auto since = task.read();
  ASSERT_TRUE(since.seek_since(std::chrono::floor<milliseconds>(kBegin)));
  EXPECT_EQ(told(since), "{new err\n}new out\n");
}

TEST(MergedOutput, BeginsWithWhatCameSince) {
  ShimFolder task({20, 4});
  for (int i = 0; i < 6; ++i) {
    task.out(fmt::format("out {}\n", i));
    task.err(fmt::format("err {}\n", i));
    task.now += std::chrono::seconds(1);
  }
  const auto since = [&](int seconds, std::int64_t tail = -1) {
    auto output = task.read();
    EXPECT_TRUE(output.seek_since(std::chrono::floor<milliseconds>(kBegin) + std::chrono::seconds(seconds)));
    if (tail >= 0) EXPECT_TRUE(output.seek_tail(tail));
    return told(output);
  };
  EXPECT_EQ(since(-9), told(task.read()));
  EXPECT_EQ(since(4), "out 4\n{err 4\n}out 5\n{err 5\n}");
  EXPECT_EQ(since(6), "");
  EXPECT_EQ(since(4, 3), "{err 4\n}out 5\n{err 5\n}");
  EXPECT_EQ(since(5, 3), "out 5\n{err 5\n}");
}

TEST(MergedOutput, TheTailIsOfBoth) {
  ShimFolder task({20, 4});
  for (int i = 0; i < 4; ++i) task.out(fmt::format("o{}\n", i));
  task.err("e0\n");
  task.out("o4\no5");
  task.err("e1\n");
  const auto tail = [&](std::int64_t lines) {
    auto output = task.read();
    EXPECT_TRUE(output.seek_tail(lines));
    return told(output);
  };
  EXPECT_EQ(tail(0), "");
  EXPECT_EQ(tail(1), "{e1\n}");
  EXPECT_EQ(tail(2), "o5{e1\n}");
  EXPECT_EQ(tail(4), "{e0\n}o4\no5{e1\n}");
  EXPECT_EQ(tail(5), "o3\n{e0\n}o4\no5{e1\n}");
  EXPECT_EQ(tail(99), told(task.read()));
  // The end of a line that began before is no line.
  task.out(" goes on\no6\n");
  EXPECT_EQ(tail(2), "{e1\n}o6\n");
}

TEST(MergedOutput, GoesOnFromAPosition) {
  ShimFolder task({30, 5});
  task.out("heard ");
  task.err("heard too ");
  auto first = task.read();
  (void)told(first);
  const auto position = first.position();
  for (int i = 0; i < 3; ++i) {
    task.err("unheard\n");
    task.out("unheard as well\n");
  }
  auto second = task.read();
  second.seek(position);
  EXPECT_EQ(told(second), told(first));
  for (const auto* nonsense : {"", "stdout=", "stdout=1", "stdout=x:y", "stdout=99999999999999999999999:1"}) {
    auto output = task.read();
    output.seek(nonsense);
    EXPECT_EQ(told(output), told(task.read())) << nonsense;
  }
}

TEST(MergedOutput, TimesStandInFrontOfLines) {
  ShimFolder task;
  task.out("a\nb");
  task.now += std::chrono::seconds(1);
  task.out("c\n\nd\n");
  auto output = task.read();
  TimedLines lines;
  std::string text;
  for (auto piece = output.peek().value(); !piece.bytes.empty(); piece = output.peek().value()) {
    text += lines.take(piece.bytes, piece.at);
    output.take(piece, piece.bytes.size());
  }
  EXPECT_EQ(text,
            "2023-11-14T22:13:20.000Z a\n2023-11-14T22:13:20.000Z bc\n"
            "2023-11-14T22:13:21.000Z \n2023-11-14T22:13:21.000Z d\n");
  EXPECT_EQ(TimedLines().take("x\ny", std::nullopt), "- x\n- y");
  EXPECT_EQ(TimedLines(TimedLines::Begin::kMiddle).take("x\ny", std::nullopt), "x\n- y");
}

TEST(MergedOutput, AFileThatTheTaskEmptiedIsStillTold) {
  ShimFolder task;
  task.out("gone\n");
  task.err("first\n");
  ASSERT_EQ(::truncate((task.sandbox() + "/stdout").c_str(), 0), 0);
  task.out("second\n");
  task.err("third\n");
  EXPECT_EQ(told(task.read()), "{first\n}second\n{third\n}");
}

/// Whatever is done, both are told whole, each in its own order, and in the order of both while nobody
/// meddles.
TEST(MergedOutput, NothingIsLostOrDoubledOrMovedWhateverTheOrder) {
  EXPECT_TRUE(rc::check("writes, rotations, restarts, pauses and readers in any order", [] {
    ShimFolder task({*rc::gen::element<std::uint64_t>(12, 40, 4096), 64});
    std::string written, seen;
    auto output = task.read(kOutputs, *rc::gen::arbitrary<bool>());
    int attempts = 0;
    for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9))) {
      if (step < 5) {
        const int stream = step % 2;
        const auto text = fmt::format("{}{}\n", stream == 1 ? "e" : "o", written.size());
        task.write(stream, text);
        written += text;
      } else if (step == 5) {
        task.now += milliseconds(60);
      } else if (step == 6 && ++attempts < 8) {
        task.start(OldLog::kKeep);
      } else if (step == 7) {
        const auto piece = output.peek().value();
        const auto part = (piece.bytes.size() + 1) / 2;
        seen += piece.bytes.substr(0, part);
        if (part > 0) output.take(piece, part);
      } else {
        const auto position = output.position();
        output = task.read();
        output.seek(position);
      }
    }
    for (auto piece = output.peek().value(); !piece.bytes.empty(); piece = output.peek().value()) {
      seen += piece.bytes;
      output.take(piece, piece.bytes.size());
    }
    RC_ASSERT(seen == written);
  }));
}

TEST(MergedOutput, ADamagedRecordCostsOnlyTheOrder) {
  EXPECT_TRUE(rc::check("bytes of the record are changed, cut off and added", [] {
    ShimFolder task({40, 64});
    std::string outputs[2];
    for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3))) {
      const auto text = fmt::format("{}\n", outputs[0].size() + outputs[1].size());
      if (step == 2)
        task.now += milliseconds(200);
      else
        task.write(step, text), outputs[step] += text;
    }
    std::string record;
    if (auto read = read_file(task.record())) record = *read;
    for (const auto& [place, byte] : *rc::gen::arbitrary<std::vector<std::pair<std::uint16_t, char>>>())
      if (!record.empty()) record[place % record.size()] = byte;
    record.resize(*rc::gen::inRange<std::size_t>(0, record.size() + 40), '\x7f');
    std::ofstream(task.record(), std::ios::trunc | std::ios::binary) << record;
    auto output = task.read();
    if (*rc::gen::arbitrary<bool>()) (void)task.read().seek_since(std::chrono::floor<milliseconds>(task.now));
    (void)task.read().seek_tail(2);
    std::string seen[2];
    for (auto piece = output.peek().value(); !piece.bytes.empty(); piece = output.peek().value()) {
      seen[piece.stream] += piece.bytes;
      output.take(piece, piece.bytes.size());
    }
    RC_ASSERT(seen[0] == outputs[0]);
    RC_ASSERT(seen[1] == outputs[1]);
  }));
}

TEST(MergedOutput, OneThatIsSilentIsNotWaitedFor) {
  ShimFolder task;
  auto output = task.read();
  for (int i = 0; i < 500; ++i) {
    task.err("x");
    task.now += milliseconds(200);
  }
  EXPECT_EQ(told(output).size(), 1500u);
}

}  // namespace
}  // namespace drover::api
