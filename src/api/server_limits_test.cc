// What the server lets in: sizes, times and numbers of connections, and who comes over TCP.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>

#include "api/server.h"
#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api {
namespace {

using nlohmann::json;
using testing::body_of;
using ::testing::HasSubstr;
using testing::RawConnection;
using testing::ServerFixture;
using testing::status_of;

const std::string kSecret = "0123456789abcdef0123456789abcdef";
const std::string kAuthorization = "Authorization: Bearer " + kSecret + "\r\n";

class LimitsTest : public ::testing::Test {
 protected:
  static ServerOptions options() {
    ServerOptions options;
    options.limits.header_time = std::chrono::seconds(1);
    options.limits.body_time = std::chrono::seconds(1);
    options.limits.connections = 3;
    options.limits.connections_for_root = 0;
    return options;
  }
  ServerFixture server_{options()};
};

TEST_F(LimitsTest, ASlowHeaderOrBodyIsCutOff) {
  auto slow_header = RawConnection::to_unix(server_.socket());
  slow_header.send("GET /v1/version HT");
  EXPECT_EQ(status_of(slow_header.receive("}\n")), 408);
  auto slow_body = RawConnection::to_unix(server_.socket());
  slow_body.send(
      "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{");
  const auto refused = slow_body.receive("}\n");
  EXPECT_EQ(status_of(refused), 408);
  EXPECT_THAT(refused, HasSubstr("Connection: close\r\n"));
}

TEST_F(LimitsTest, OneByteAtATimeIsNoWayToStay) {
  auto trickling = RawConnection::to_unix(server_.socket());
  std::atomic<bool> answered = false;
  std::thread sender([&] {
    trickling.send("GET /v1/version HTTP/1.1\r\nX: ");
    while (!answered && trickling.send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  EXPECT_EQ(status_of(trickling.receive("}\n")), 408);
  answered = true;
  sender.join();
}

TEST_F(LimitsTest, ConnectionsMayWaitLongerThanHeadersMay) {
  auto idle = RawConnection::to_unix(server_.socket());
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // more than header_time
    idle.send("GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(status_of(idle.receive("}\n")), 200);
  }
}

TEST_F(LimitsTest, OneConnectionTooManyIsToldSo) {
  std::vector<RawConnection> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(RawConnection::to_unix(server_.socket()));
    open.back().send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
    open.back().receive("\r\n\r\n");
  }
  EXPECT_EQ(status_of(RawConnection::to_unix(server_.socket()).receive()), 503);
}

class TcpTest : public ::testing::Test {
 protected:
  static ServerOptions options() {
    ServerOptions options;
    options.listen = ListenAddress{"127.0.0.1", 0};
    options.credentials = {{"root", kSecret}};
    return options;
  }
  std::string ask(const std::string& target, const std::string& headers, std::string host = "") {
    const auto port = server_.server().tcp_address()->port;
    if (host.empty()) host = "127.0.0.1:" + std::to_string(port);
    auto connection = RawConnection::to_loopback(port);
    connection.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + headers +
                    "\r\n");
    return connection.receive();
  }
  std::string own_host() { return "localhost:" + std::to_string(server_.server().tcp_address()->port); }
  ServerFixture server_{options()};
};

TEST_F(TcpTest, NothingButHealthWithoutASecret) {
  for (const auto* target :
       {"/v1/version", "/v1/gpus", "/v1/nodes", "/v1/tasks", "/v1/events", "/v1/topology"}) {
    const auto answer = ask(target, "");
    EXPECT_EQ(status_of(answer), 401) << target;
    EXPECT_THAT(answer, HasSubstr("WWW-Authenticate: "));
    EXPECT_EQ(status_of(ask(target, "Authorization: Bearer " + kSecret + "0\r\n")), 401) << target;
  }
  const auto health = ask("/health", "");
  EXPECT_EQ(status_of(health), 200);
  EXPECT_THAT(health, Not(HasSubstr("problems")));
}

TEST_F(TcpTest, TheSecretOpens) {
  EXPECT_EQ(status_of(ask("/v1/gpus", kAuthorization)), 200);
  EXPECT_EQ(status_of(ask("/v1/gpus",
                          "Authorization: Basic cm9vdDowMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==\r\n")),
            200);
}

TEST_F(TcpTest, AWrongSecretWaitsForItsAnswerAndIsToldWhileARightOneDoesNot) {
  auto slow = options();
  slow.limits.wrong_secret_pause = std::chrono::hours(1);
  std::promise<std::string> told;
  slow.log = [&](const std::string& line) { told.set_value(line); };
  ServerFixture server(slow);
  const auto send = [&](const std::string& authorization) {
    auto connection = RawConnection::to_loopback(server.server().tcp_address()->port);
    connection.send("GET /v1/gpus HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + authorization +
                    "\r\n");
    return connection;
  };
  const auto wrong = send("Authorization: Bearer " + kSecret + "0\r\n");
  EXPECT_EQ(told.get_future().get(), "A wrong secret came from 127.0.0.1");
  EXPECT_EQ(status_of(send(kAuthorization).receive()), 200);
  EXPECT_FALSE(wrong.has_answer());
}

TEST_F(TcpTest, AStrangersBodyIsNotRead) {
  auto connection = RawConnection::to_loopback(server_.server().tcp_address()->port);
  connection.send("POST /v1/tasks HTTP/1.1\r\nHost: " + own_host() +
                  "\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(status_of(connection.receive("}\n")), 401);
}

TEST_F(TcpTest, ForeignHostsAndOriginsAreRefusedEvenWithTheSecret) {
  EXPECT_EQ(status_of(ask("/v1/version", kAuthorization, "evil.example")), 403);
  EXPECT_EQ(status_of(ask("/v1/version", kAuthorization, "localhost:1")), 403);
  EXPECT_EQ(status_of(ask("/health", "", "evil.example")), 403);
  EXPECT_EQ(status_of(ask("/v1/version", kAuthorization + "Origin: http://evil.example\r\n")), 403);
  EXPECT_EQ(status_of(ask("/v1/version", kAuthorization + "Origin: null\r\n")), 403);
  EXPECT_EQ(
      status_of(ask("/v1/version", kAuthorization + "Origin: http://" + own_host() + "\r\n", own_host())),
      200);
}

TEST(ServerStart, TcpWithoutCredentialsIsRefused) {
  testing::TemporaryFolder folder;
  testing::FakeDaemon daemon(folder.path());
  boost::asio::io_context context;
  ServerOptions options;
  options.socket_path = folder.path() + "/socket";
  options.listen = ListenAddress{"127.0.0.1", 0};
  EXPECT_FALSE(Server::start(context, daemon, options));
}

}  // namespace
}  // namespace drover::api
