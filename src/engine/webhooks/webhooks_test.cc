#include "engine/webhooks/webhooks.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "engine/testing/loopback.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;

/// Answers one connection after the other with these texts, the last one again and again; "" is silence.
class Receiver {
 public:
  explicit Receiver(std::vector<std::string> answers) : answers_(std::move(answers)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~Receiver() {
    listener_.shut();
    thread_.join();
  }

  std::string url(const std::string& credentials = "") const {
    return "http://" + credentials + "127.0.0.1:" + std::to_string(listener_.port) + "/runs?of=me";
  }
  /// The requests so far, once there are so many.
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return requests_.size() >= count; });
    return requests_;
  }

 private:
  void serve() {
    std::vector<UniqueFd> silent;
    while (true) {
      auto client = listener_.accept();
      if (!client.valid()) return;
      auto request = read_request(client.get());
      const std::lock_guard lock(mutex_);
      const auto& answer = answers_[std::min(requests_.size(), answers_.size() - 1)];
      requests_.push_back(std::move(request));
      changed_.notify_all();
      if (answer.empty())
        silent.push_back(std::move(client));
      else
        (void)::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }
  static std::string read_request(int fd) {
    std::string text;
    std::array<char, 4096> buffer;
    while (true) {
      const auto count = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (count <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(count));
      const auto end = text.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const auto length = text.find("Content-Length: ");
      if (length == std::string::npos || text.size() >= end + 4 + std::stoul(text.substr(length + 16)))
        return text;
    }
  }

  std::vector<std::string> answers_;
  testing::LoopbackListener listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

/// What the sender says.
class Log {
 public:
  std::function<void(const std::string&)> sink() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      changed_.notify_all();
    };
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

WebhookMessage message(const std::string& url, const std::string& body = R"({"job":"j"})") {
  return {*workload::parse_webhook(url), body, "ct:1:0:j:"};
}

constexpr const char* kTaken = "HTTP/1.1 204 No Content\r\n\r\n";

TEST(Webhooks, PostJsonAsItIs) {
  Receiver receiver({kTaken});
  Webhooks webhooks({});
  EXPECT_TRUE(webhooks.send(message(receiver.url("me:secret@"))));
  const auto request = receiver.wait_for(1).front();
  EXPECT_TRUE(request.starts_with("POST /runs?of=me HTTP/1.1\r\n")) << request;
  EXPECT_NE(request.find("Host: 127.0.0.1:"), request.npos);
  EXPECT_NE(request.find("\r\nContent-Type: application/json\r\n"), request.npos);
  EXPECT_NE(request.find("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n"), request.npos);
  EXPECT_NE(request.find("\r\nContent-Length: 11\r\n"), request.npos);
  EXPECT_TRUE(request.ends_with("\r\n\r\n{\"job\":\"j\"}")) << request;
}

TEST(Webhooks, AreTriedAgainWhenTheServerIsInTrouble) {
  Receiver receiver({"HTTP/1.1 503 Busy\r\n\r\n", "garbage\r\n\r\n", kTaken});
  Log log;
  Webhooks webhooks({.pause = 1ms, .log = log.sink()});
  EXPECT_TRUE(webhooks.send(message(receiver.url())));
  EXPECT_EQ(receiver.wait_for(3).size(), 3U);
  const auto lines = log.wait_for(2);
  EXPECT_EQ(lines[0],
            "The webhook at '127.0.0.1' was not told of run 'ct:1:0:j:': it answered 503; it is tried again");
}

TEST(Webhooks, AreGivenUpAfterTheLastTry) {
  Receiver receiver({"HTTP/1.1 500 No\r\n\r\n"});
  Log log;
  Webhooks webhooks({.tries = 2, .pause = 1ms, .log = log.sink()});
  EXPECT_TRUE(webhooks.send(message(receiver.url())));
  EXPECT_EQ(log.wait_for(2)[1],
            "The webhook at '127.0.0.1' was not told of run 'ct:1:0:j:': it answered 500");
  EXPECT_TRUE(webhooks.send(message(receiver.url())));
  EXPECT_EQ(receiver.wait_for(4).size(), 4U);
}

TEST(Webhooks, FollowNoRedirectAndRepeatNoRefusal) {
  Receiver other({kTaken});
  Receiver receiver(
      {"HTTP/1.1 302 Found\r\nLocation: " + other.url() + "\r\n\r\n", "HTTP/1.1 400 No\r\n\r\n", kTaken});
  Log log;
  Webhooks webhooks({.pause = 1ms, .log = log.sink()});
  EXPECT_TRUE(webhooks.send(message(receiver.url(), R"({"number":1})")));
  EXPECT_EQ(log.wait_for(1)[0],
            "The webhook at '127.0.0.1' was not told of run 'ct:1:0:j:': it answered 302");
  EXPECT_TRUE(webhooks.send(message(receiver.url(), R"({"number":2})")));
  EXPECT_EQ(log.wait_for(2)[1],
            "The webhook at '127.0.0.1' was not told of run 'ct:1:0:j:': it answered 400");
  EXPECT_TRUE(webhooks.send(message(receiver.url(), R"({"number":3})")));
  const auto requests = receiver.wait_for(3);
  EXPECT_TRUE(requests[1].ends_with(R"({"number":2})"));
  EXPECT_TRUE(requests[2].ends_with(R"({"number":3})"));
}

TEST(Webhooks, OneThatHangsHoldsUpNobodyElse) {
  Receiver silent({""}), receiver({kTaken});
  Log log;
  Webhooks webhooks({.timeout = 50ms, .tries = 1, .most_at_once = 2, .log = log.sink()});
  EXPECT_TRUE(webhooks.send(message(silent.url())));
  EXPECT_TRUE(webhooks.send(message(receiver.url())));
  EXPECT_EQ(receiver.wait_for(1).size(), 1U);
  EXPECT_NE(log.wait_for(1)[0].find("did not answer within"), std::string::npos);
}

TEST(Webhooks, NoMoreWaitThanMay) {
  Receiver silent({""});
  Webhooks webhooks({.timeout = 1h, .most_waiting = 3, .most_at_once = 1});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(webhooks.send(message(silent.url())));
  EXPECT_FALSE(webhooks.send(message(silent.url())));
}

TEST(Webhooks, DoNotReachWhereCloudsKeepTheirSecrets) {
  for (const auto* address : {"169.254.169.254", "169.254.0.1", "::ffff:169.254.169.254", "fe80::1",
                              "fd00:ec2::254", "224.0.0.1", "ff02::1", "0.0.0.0", "::", "not an address"})
    EXPECT_TRUE(is_forbidden_address(address)) << address;
  for (const auto* address :
       {"169.253.255.255", "169.255.0.0", "127.0.0.1", "10.0.0.1", "93.184.216.34", "::1", "2001:db8::1"})
    EXPECT_FALSE(is_forbidden_address(address)) << address;
  Log log;
  Webhooks webhooks({.log = log.sink()});
  for (const auto* url : {"http://169.254.169.254/latest/meta-data", "http://2852039166/"})
    EXPECT_TRUE(webhooks.send(message(url)));
  for (const auto& line : log.wait_for(2))
    EXPECT_NE(line.find("nobody may reach its address"), line.npos) << line;
}

TEST(Webhooks, WhoeverServesHttpsShowsACertificateThatIsTrusted) {
  Receiver plain({kTaken});
  Log log;
  Webhooks webhooks({.tries = 1, .log = log.sink()});
  auto wanted = message(plain.url());
  wanted.to.secure = true;
  EXPECT_TRUE(webhooks.send(wanted));
  EXPECT_EQ(log.wait_for(1).size(), 1U);  // it speaks no TLS
}

}  // namespace
}  // namespace drover::engine
