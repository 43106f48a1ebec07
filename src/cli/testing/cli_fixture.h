#pragma once

// The command line, run in the process of the test, against a daemon that the test is in command of.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "api/testing/fake_daemon.h"
#include "cli/cli.h"

namespace drover::cli::testing {

/// What a command line gave.
struct Ran {
  int status = 0;
  std::string out;
  std::string err;
};

inline Hooks hooks() {
  Hooks result;
  result.version = "1.2.3";
  result.serve = [](const ServeOptions& options) -> Status {
    auto told = options.state + " " + options.socket + " " + options.simulate + " " + options.placement;
    for (const auto& [name, values] : options.attributes)
      for (const auto& value : values) told += " " + name + "=" + value;
    return fail(ErrorKind::kUnavailable, told);
  };
  result.doctor = [] {
    return std::vector<Check>{{"kernel", Check::State::kFound, "Linux", ""},
                              {"runtime", Check::State::kMissing, "no runc", "install runc"}};
  };
  return result;
}

/// Runs the command line in this process; returns its exit status.
inline int run_words(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"drover"};
  for (const auto& word : words) argv.push_back(word.c_str());
  return run_cli(static_cast<int>(argv.size()), argv.data(), hooks());
}

/// The same, with what it writes.
inline Ran drover(const std::vector<std::string>& words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ran ran;
  ran.status = run_words(words);
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

class CliTest : public ::testing::Test {
 protected:
  Ran ask(std::vector<std::string> words) {
    words.insert(words.begin(), {"--socket", server_.socket()});
    return drover(words);
  }
  std::string submit() {
    auto id = ask({"run", "--detach", "--", "sleep", "9"}).out;
    id.pop_back();
    return id;
  }
  void end(const std::string& id, int status, control::TaskState state, const std::string& reason = "") {
    server_.on_strand([&] { server_.daemon().end(id, status, state, reason); });
  }
  /// Ends the next task as soon as it is there, and does `before` first.
  std::thread end_next_task(
      int status, control::TaskState state, const std::string& reason, std::function<void()> before = [] {}) {
    return std::thread([=, this] {
      wait_for([&] { return server_.on_strand([&] { return !server_.daemon().tasks(kRoot).empty(); }); });
      before();
      end("task-1", status, state, reason);
    });
  }
  static void wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  const engine::Caller kRoot{};
  api::testing::ServerFixture server_;
};

}  // namespace drover::cli::testing
