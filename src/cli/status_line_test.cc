#include "cli/status_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/fd.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// A terminal of 20 columns, and what was written to it.
struct Terminal {
  UniqueFd master{::posix_openpt(O_RDWR | O_NOCTTY)};
  UniqueFd terminal;
  Terminal() {
    EXPECT_EQ(::grantpt(master.get()), 0);
    EXPECT_EQ(::unlockpt(master.get()), 0);
    terminal = UniqueFd(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY));
    const winsize size{24, 20, 0, 0};
    EXPECT_EQ(::ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
    ::setenv("NO_COLOR", "1", 1);
  }
  ~Terminal() { ::unsetenv("NO_COLOR"); }
  std::string written() const {
    std::string text(4096, '\0');
    const auto count = ::read(master.get(), text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
  }
};

TEST(StatusLine, WordsOfWhatDoesNotRunYet) {
  EXPECT_EQ(progress_words({{"state", "queued"}, {"reason", "1 GPU is wanted"}}, 2),
            "waiting at place 2: 1 GPU is wanted");
  EXPECT_EQ(progress_words({{"state", "queued"}}, 0), "waiting");
  EXPECT_EQ(progress_words({{"state", "starting"}, {"reason", "pulling x: 1 of 3 layers"}}, 0),
            "pulling x: 1 of 3 layers");
  EXPECT_EQ(progress_words({{"state", "starting"}}, 0), "starting");
  EXPECT_EQ(progress_words({{"state", "running"}, {"reason", "x"}}, 0), "");
}

TEST(StatusLine, OneLineIsWrittenOverAndOverAndWiped) {
  const Terminal terminal;
  StatusLine line(terminal.terminal.get());
  line.show("one");
  EXPECT_EQ(terminal.written(), "\r\033[Kone");
  line.show("one");
  line.show("2345678901234567890\xc3\xa4xyz");
  EXPECT_EQ(terminal.written(), "\r\033[K2345678901234567890") << "no wider than the terminal";
  line.clear();
  EXPECT_EQ(terminal.written(), "\r\033[K");
}

TEST(StatusLine, ColoursAreForTerminalsThatWantThem) {
  const Terminal terminal;
  ::unsetenv("NO_COLOR");
  StatusLine line(terminal.terminal.get());
  line.show("one");
  EXPECT_EQ(terminal.written(), "\r\033[K\033[2mone\033[0m");
}

TEST(StatusLine, ElsewhereNothingIsWritten) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  {
    StatusLine line(writer.get());
    line.show("one");
  }
  char byte = 0;
  EXPECT_LT(::read(reader.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace drover::cli
