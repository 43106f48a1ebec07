#include "container/docker/exchange.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <thread>

#include "base/fake_tree.h"
#include "base/fd.h"

namespace drover::container::docker {
namespace {

using namespace std::chrono_literals;

/// Hears one request on a unix socket, answers with these bytes, and closes.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      std::array<char, 4096> buffer;
      const auto count = ::recv(client.get(), buffer.data(), buffer.size(), 0);
      if (count > 0) asked_.assign(buffer.data(), static_cast<std::size_t>(count));
      for (const auto byte : answer) ::send(client.get(), &byte, 1, MSG_NOSIGNAL);
    });
  }
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
  }

  std::string path() const { return tree_ / "socket"; }
  std::string asked() {
    thread_.join();
    return asked_;
  }

 private:
  FakeTree tree_;
  UniqueFd listener_;
  std::string asked_;
  std::thread thread_;
};

Error trouble_with(const std::string& answer) {
  const OneAnswer engine(answer);
  const auto answered = call(engine.path(), {.target = "/version"}, 20s);
  return answered ? Error{} : answered.error();
}

TEST(Exchange, AsksAndReadsTheAnswer) {
  OneAnswer engine(
      "HTTP/1.1 201 Made\r\nApi-Version: 1.44\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
  const auto answered = call(engine.path(), {.method = "POST", .target = "/x?y", .body = "[]"}, 20s);
  ASSERT_TRUE(answered) << answered.error().message;
  EXPECT_EQ(answered->status, 201);
  EXPECT_EQ(answered->body, "{}");
  EXPECT_EQ(answered->api_version, "1.44");
  EXPECT_EQ(engine.asked(),
            "POST /x?y HTTP/1.1\r\nHost: docker\r\nUser-Agent: drover\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\nConnection: close\r\n\r\n[]");
}

TEST(Exchange, SaysWhatIsWrong) {
  const auto nobody = call("/no/such/socket", {});
  EXPECT_EQ(nobody.error().message,
            "No Docker Engine answers at '/no/such/socket': No such file or directory");
  EXPECT_NE(trouble_with("SSH-2.0-OpenSSH_9\r\n").message.find("does not speak HTTP"), std::string::npos);
  for (const auto* answer : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
                             "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\nab"}) {
    const auto error = trouble_with(answer);
    EXPECT_EQ(error.kind, ErrorKind::kUnavailable) << answer;
    EXPECT_NE(error.message.find("broke off its answer"), std::string::npos) << answer;
  }
}

}  // namespace
}  // namespace drover::container::docker
