#include "engine/checks/checks.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "engine/testing/loopback.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using workload::CheckKind;
using workload::HealthCheck;
using workload::ReadinessCheck;

/// Answers every connection with the same bytes ("" for silence), and keeps what was asked.
class Server {
 public:
  explicit Server(std::string answer) : answer_(std::move(answer)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    listener_.shut();
    thread_.join();
  }

  int port() const { return listener_.port; }
  std::string asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  int connections() const {
    const std::lock_guard lock(mutex_);
    return connections_;
  }

 private:
  void serve() {
    std::vector<UniqueFd> silent;
    while (true) {
      auto client = listener_.accept();
      if (!client.valid()) return;
      {
        const std::lock_guard lock(mutex_);
        ++connections_;
      }
      if (answer_.empty()) {
        silent.push_back(std::move(client));
        continue;
      }
      // A client that says nothing must not keep the test from its end.
      const timeval patience{.tv_sec = 2};
      ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      std::array<char, 4096> buffer;
      const auto count = ::recv(client.get(), buffer.data(), buffer.size(), 0);
      if (count > 0) {
        const std::lock_guard lock(mutex_);
        asked_.assign(buffer.data(), static_cast<std::size_t>(count));
      }
      ::send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }

  std::string answer_;
  testing::LoopbackListener listener_;
  mutable std::mutex mutex_;
  std::string asked_;
  int connections_ = 0;
  std::thread thread_;
};

class ChecksTest : public ::testing::Test {
 protected:
  ChecksTest()
      : checks_(context_, {[this](const CheckResult& result) { results_.push_back(result); },
                           [this](const auto& id, const auto& command, auto timeout, auto done) {
                             commands_.push_back(command);
                             EXPECT_EQ(id, "t");
                             EXPECT_EQ(timeout, 5s);
                             done(outcome_);
                           },
                           [] { return TimePoint(1h); }}) {}

  static CheckTarget target(HealthCheck check, int port, std::string name = "c") {
    check.delay = 0ms;
    check.timeout = std::min<std::chrono::milliseconds>(check.timeout, 5s);
    return {.task_id = "t", .check = std::move(name), .port = port, .what = std::move(check)};
  }

  /// Runs until there are so many results.
  void await(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (results_.size() < count && std::chrono::steady_clock::now() < end) {
      context_.restart();
      context_.run_one_for(1s);
    }
    ASSERT_GE(results_.size(), count) << "too few results came";
  }

  static CheckTarget keeping_body(int port) {
    return {.task_id = "t",
            .check = "ready",
            .port = port,
            .what = ReadinessCheck{.timeout = 5s, .preserve_last_response = true}};
  }
  CheckResult result_of(const CheckTarget& checked) {
    results_.clear();
    checks_.set("t", {checked});
    await(1);
    return results_.empty() ? CheckResult{} : results_.front();
  }

  CheckResult answered(const std::string& answer, HealthCheck check = {}) {
    const Server server(answer);
    auto result = result_of(target(std::move(check), server.port()));
    checks_.set("t", {});
    return result;
  }

  boost::asio::io_context context_;
  std::vector<CheckResult> results_;
  std::vector<std::vector<std::string>> commands_;
  Result<CheckPorts::CommandOutcome> outcome_ = CheckPorts::CommandOutcome{};
  Checks checks_;
};

TEST_F(ChecksTest, AServerIsWellThatAnswers200To399) {
  const std::map<std::string, bool> answers = {
      {"200 OK", true},   {"204 No Content", true}, {"302 Found", true},   {"399 Odd", true},
      {"400 Bad", false}, {"404 Not Found", false}, {"500 Broken", false}, {"199 Odd", false}};
  for (const auto& [status, well] : answers) {
    const auto result = answered(
        "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\nLocation: /elsewhere\r\n\r\n", {.path = "/health"});
    EXPECT_EQ(result.passed, well) << status;
    EXPECT_NE(result.why.find("/health answered " + status.substr(0, 3)), std::string::npos) << result.why;
    EXPECT_EQ(result.status, std::stoi(status));
    EXPECT_EQ(result.task_id, "t");
    EXPECT_EQ(result.check, "c");
  }
}

TEST_F(ChecksTest, AsksAsABrowserWould) {
  const Server server("HTTP/1.0 200 OK\r\n\r\n");
  result_of(target({.path = "a?b=c"}, server.port()));
  EXPECT_EQ(
      server.asked().find("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) + "\r\n"),
      0U)
      << server.asked();
}

TEST_F(ChecksTest, TellsWhyThereIsNoAnswer) {
  EXPECT_NE(answered("", {.timeout = 50ms}).why.find("did not answer within 50ms"), std::string::npos);
  EXPECT_FALSE(answered("no http at all\r\n\r\n").passed);
  EXPECT_FALSE(answered("HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x')).passed);
  int closed = 0;
  {
    const Server gone("x");
    closed = gone.port();
  }
  const auto refused = result_of(target({}, closed));
  EXPECT_FALSE(refused.passed);
  EXPECT_EQ(refused.status, std::nullopt);
  EXPECT_EQ(refused.why, "nobody listens on 127.0.0.1:" + std::to_string(closed));
}

TEST_F(ChecksTest, AnOpenPortIsEnoughForTcp) {
  int port = 0;
  {
    const Server server("");
    port = server.port();
    const auto open = result_of(target({.kind = CheckKind::kTcp}, port));
    EXPECT_TRUE(open.passed);
    EXPECT_EQ(open.status, 1);
  }
  checks_.set("t", {});
  const auto closed = result_of(target({.kind = CheckKind::kTcp}, port));
  EXPECT_FALSE(closed.passed);
  EXPECT_EQ(closed.status, 0);
}

TEST_F(ChecksTest, InformationalAnswersCanBeIgnored) {
  const Server server("HTTP/1.1 102 Processing\r\nContent-Length: 0\r\n\r\n");
  checks_.set("t", {target({.ignore_http_1xx = true, .interval = 100ms}, server.port())});
  while (server.connections() < 3) {
    context_.restart();
    context_.run_one_for(1s);
  }
  EXPECT_TRUE(results_.empty());
}

TEST_F(ChecksTest, CommandsRunInTheContainer) {
  const auto check = target({.kind = CheckKind::kCommand, .command = {"/bin/look", "-a"}}, 0);
  outcome_ = CheckPorts::CommandOutcome{0, "fine\n"};
  EXPECT_TRUE(result_of(check).passed);
  EXPECT_EQ(commands_.front(), (std::vector<std::string>{"/bin/look", "-a"}));
  checks_.set("t", {});
  outcome_ = CheckPorts::CommandOutcome{3, "first\nno disk\n"};
  const auto failed = result_of(check);
  EXPECT_EQ(failed.why, "the command exited with status 3: no disk");
  EXPECT_EQ(failed.status, 3);
  checks_.set("t", {});
  outcome_ = fail(ErrorKind::kTimeout, "It ran longer than 5s");
  const auto late = result_of(check);
  EXPECT_FALSE(late.passed);
  EXPECT_EQ(late.status, std::nullopt);
  EXPECT_EQ(late.why, "It ran longer than 5s");
}

TEST_F(ChecksTest, ReadinessKeepsTheAnswer) {
  const Server server("HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nwait");
  auto ready = keeping_body(server.port());
  auto result = result_of(ready);
  EXPECT_FALSE(result.passed);
  ASSERT_TRUE(result.response);
  EXPECT_EQ(result.response->status, 503);
  EXPECT_EQ(result.response->content_type, "text/plain");
  EXPECT_EQ(result.response->body, "wait");
  std::get<ReadinessCheck>(ready.what).ready_statuses = {200, 503};
  EXPECT_TRUE(result_of(ready).passed);
}

TEST_F(ChecksTest, BodiesAreLimited) {
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + std::string(200'000, 'x'));
  const auto result = result_of(keeping_body(server.port()));
  EXPECT_TRUE(result.passed);
  EXPECT_LE(result.response->body.size(), 65536U);
}

TEST_F(ChecksTest, ABodyThatIsSaidToBeHugeIsReadAsFarAsItComes) {
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\n" + std::string(9, 'x'));
  const auto result = result_of(keeping_body(server.port()));
  EXPECT_TRUE(result.passed);
  ASSERT_TRUE(result.response);
  EXPECT_EQ(result.response->body, std::string(9, 'x'));
}

TEST_F(ChecksTest, TheSameSetAgainChangesNothing) {
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  const std::vector<CheckTarget> targets = {target({.interval = 1h}, server.port(), "a"),
                                            target({.interval = 1h}, server.port(), "b")};
  checks_.set("t", targets);
  await(2);
  for (int i = 0; i < 3; ++i) checks_.set("t", targets);
  EXPECT_EQ(checks_.size(), 2U);
  // If one had begun anew, it would give its result before this one, which comes later.
  auto more = targets;
  more.push_back(target({.interval = 1h}, server.port(), "z"));
  checks_.set("t", more);
  await(3);
  EXPECT_EQ(results_.size(), 3U);
  EXPECT_EQ(results_.back().check, "z");
}

TEST_F(ChecksTest, EveryTaskHasItsOwn) {
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  auto other = target({.interval = 1h}, server.port(), "b");
  other.task_id = "t1";
  checks_.set("t1", {other});
  checks_.set("t", {target({.interval = 1h}, server.port(), "a")});
  EXPECT_EQ(checks_.size(), 2U);
  await(2);
  checks_.set("t", {});
  EXPECT_EQ(checks_.size(), 1U);
  checks_.set("t1", {});
  EXPECT_EQ(checks_.size(), 0U);
}

TEST_F(ChecksTest, WhatIsGoneOrChangedGivesNoResult) {
  const Server silent("");
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  checks_.set("t", {target({.timeout = 1s}, silent.port(), "gone"), target({}, silent.port(), "moved")});
  while (silent.connections() < 2) {
    context_.restart();
    context_.run_one_for(1s);
  }
  checks_.set("t", {target({.interval = 100ms}, server.port(), "moved")});
  await(12);  // longer than the timeout of what is gone
  for (const auto& result : results_) {
    EXPECT_EQ(result.check, "moved");
    EXPECT_TRUE(result.passed) << result.why;
  }
}

TEST_F(ChecksTest, TheDelayCountsFromTheStartOfTheTask) {
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  auto late = target({.interval = 100ms}, server.port(), "late");
  std::get<HealthCheck>(late.what).delay = 30min;
  late.started_at = TimePoint(59min);
  auto due = late;
  due.check = "due";
  due.started_at = TimePoint(30min);
  checks_.set("t", {late, due});
  await(3);
  for (const auto& result : results_) EXPECT_EQ(result.check, "due");
}

TEST_F(ChecksTest, ThousandsAreCheckedAtOnce) {
  const Server server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  std::vector<CheckTarget> targets;
  for (int i = 0; i < 3000; ++i)
    targets.push_back(target({.interval = 1h}, server.port(), std::to_string(i)));
  checks_.set("t", targets);
  await(3000);
  EXPECT_TRUE(
      std::all_of(results_.begin(), results_.end(), [](const auto& result) { return result.passed; }));
}

}  // namespace
}  // namespace drover::engine
