#include "container/output_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

class OutputRecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/drover-record-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    folder_ = static_cast<char*>(folder);
    fs::create_directory(folder_ / "sandbox");
    task_.reset(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    sandbox_.reset(::open((folder_ / "sandbox").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::shared_ptr<OutputRecorder> recorder(OldLog old = OldLog::kRemove) {
    return std::make_shared<OutputRecorder>(task_.get(), LogLimits{}, old, [this] { return now_; });
  }
  LogWriter log(const std::string& name, std::shared_ptr<OutputRecorder> recorder, LogLimits limits = {},
                OldLog old = OldLog::kRemove) {
    auto made = LogWriter::create(sandbox_.get(), name, ::getuid(), ::getgid(), limits, old).value();
    made.record_in(std::move(recorder), name == "stderr" ? 1 : 0);
    return made;
  }
  OutputRecord record() const { return OutputRecord::open(folder_ / "sandbox"); }
  static std::vector<OutputRun> all(const OutputRecord& record) {
    std::vector<OutputRun> runs;
    for (auto number = record.begin(); number < record.end();) {
      std::vector<OutputRun> some(7);
      some.resize(record.read(number, some));
      if (some.empty()) break;
      number += some.size();
      runs.insert(runs.end(), some.begin(), some.end());
    }
    return runs;
  }
  /// "out 0", "err 5": without their times.
  static std::vector<std::string> shown(const OutputRecord& record) {
    std::vector<std::string> words;
    for (const auto& run : all(record))
      words.push_back(fmt::format("{} {}", run.stream == 0 ? "out" : "err", run.offset));
    return words;
  }

  fs::path folder_;
  UniqueFd task_, sandbox_;
  OutputTime now_{std::chrono::seconds(1'700'000'000)};
};

TEST_F(OutputRecordTest, OneRunStandsForWhatComesTogether) {
  const auto recorder = this->recorder();
  auto out = log("stdout", recorder), err = log("stderr", recorder);
  for (int i = 0; i < 1000; ++i) out.append("line\n");
  err.append("oh\n");
  err.append("no\n");
  out.append("more\n");
  EXPECT_THAT(shown(record()), ElementsAre("out 0", "err 0", "out 5000"));
}

TEST_F(OutputRecordTest, ARunIsNoLongerThanItMayBe) {
  auto out = log("stdout", recorder());
  for (int i = 0; i < 21; ++i) {
    out.append("x\n");
    now_ += milliseconds(10);
  }
  now_ -= milliseconds(100);  // somebody has set the clock
  out.append("y\n");
  EXPECT_THAT(shown(record()), ElementsAre("out 0", "out 20", "out 40", "out 42"));
  EXPECT_EQ(all(record())[1].at - all(record())[0].at, milliseconds(100));
}

TEST_F(OutputRecordTest, KeepsMicroseconds) {
  now_ += microseconds(123'456);
  log("stderr", recorder()).append("x");
  ASSERT_EQ(all(record()).size(), 1u);
  EXPECT_EQ(all(record())[0].at, now_);
}

TEST_F(OutputRecordTest, ARotatedFileIsAnother) {
  auto out = log("stdout", recorder(), {10, 3});
  for (int i = 0; i < 3; ++i) out.append("12345678\n");
  const auto runs = all(record());
  ASSERT_EQ(runs.size(), 3u);
  struct stat newest{};
  ASSERT_EQ(::stat((folder_ / "sandbox/stdout").c_str(), &newest), 0);
  EXPECT_EQ(runs[2].file, file_tag(newest.st_ino));
  EXPECT_NE(runs[1].file, runs[2].file);
  EXPECT_EQ(runs[2].offset, 0u);
}

TEST_F(OutputRecordTest, ALaterAttemptGoesOn) {
  log("stdout", recorder()).append("first\n");
  log("stdout", recorder(OldLog::kKeep), {}, OldLog::kKeep).append("second\n");
  EXPECT_THAT(shown(record()), ElementsAre("out 0", "out 0"));
  (void)recorder(OldLog::kRemove);
  EXPECT_THAT(shown(record()), ElementsAre());
}

TEST_F(OutputRecordTest, IsBoundedAndForgetsTheOldest) {
  const auto recorder = std::make_shared<OutputRecorder>(task_.get(), LogLimits{100, 2}, OldLog::kRemove);
  auto out = log("stdout", recorder, {1 << 20, 2}), err = log("stderr", recorder, {1 << 20, 2});
  auto reader = record();
  for (int i = 0; i < 20'000; ++i) {
    out.append("a");
    err.append("b");
    if (i % 1000 == 0) reader.refresh();
  }
  EXPECT_LE(fs::file_size(folder_ / kOutputRecord) + fs::file_size(folder_ / kOldOutputRecord), 128u << 10);
  reader.refresh();
  for (const auto* opened : {&reader}) {
    const auto runs = all(*opened);
    ASSERT_GT(runs.size(), 4000u);
    EXPECT_EQ(runs.back().offset, 19'999u);
    for (std::size_t i = 1; i < runs.size(); ++i) EXPECT_NE(runs[i].stream, runs[i - 1].stream);
  }
  EXPECT_EQ(all(reader), all(record()));
}

TEST_F(OutputRecordTest, DamageCostsNothingButTimes) {
  log("stdout", recorder()).append("x");
  const auto spoil = [this](const std::string& bytes) {
    std::ofstream(folder_ / kOutputRecord, std::ios::trunc | std::ios::binary) << bytes;
  };
  std::ifstream file(folder_ / kOutputRecord, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  ASSERT_EQ(whole.size(), 32u);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    spoil(whole.substr(0, size));
    EXPECT_THAT(all(record()), ElementsAre()) << size;
  }
  spoil(whole.substr(0, 16) + std::string(16, '\0') + std::string(16, '\xff') + whole.substr(16) + "rest");
  const auto runs = all(record());
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].stream, -1);
  EXPECT_EQ(runs[1].stream, -1);
  EXPECT_EQ(runs[2].stream, 0);
  // What was cut off in the middle is written over.
  log("stderr", recorder(OldLog::kKeep)).append("y");
  EXPECT_EQ(all(record()).size(), 4u);
  EXPECT_EQ(all(record())[3].stream, 1);
  spoil("nonsense");
  log("stderr", recorder(OldLog::kKeep)).append("z");
  EXPECT_EQ(all(record()).size(), 1u);
}

TEST_F(OutputRecordTest, AFullDiskCostsNothingButTimes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  const auto small = folder_ / "small";
  fs::create_directory(small);
  ASSERT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k"), 0);
  {
    const UniqueFd folder(::open(small.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::ofstream(small / "filler") << std::string(128 << 10, 'x');
    auto recorder = std::make_shared<OutputRecorder>(folder.get(), LogLimits{}, OldLog::kRemove);
    auto out = log("stdout", recorder);
    out.append("untold\n");
    fs::remove(small / "filler");
    out.append("told\n");
    fs::create_directory(small / "sandbox");
    EXPECT_THAT(shown(OutputRecord::open(small / "sandbox")), ElementsAre("out 7"));
    EXPECT_EQ(fs::file_size(folder_ / "sandbox/stdout"), 12u);
  }
  ::umount2(small.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace drover::container
