#pragma once

// The command line, run in the process of the test, against a daemon that the test is in command of.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "api/testing/fake_daemon.h"
#include "cli/testing/run.h"

namespace drover::cli::testing {

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
      wait_for([&] {
        return server_.on_strand([&] { return !server_.daemon().tasks(kRoot).records().empty(); });
      });
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
