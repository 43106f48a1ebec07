// Whom the server lets in over TCP by what a request calls it, as bytes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api {
namespace {

using testing::RawConnection;
using testing::ServerFixture;
using testing::status_of;

constexpr const char* kDoorSecret = "0123456789abcdef";
constexpr const char* kReadersSecret = "fedcba9876543210";

ServerOptions door_options() {
  ServerOptions options;
  options.listen = ListenAddress{"127.0.0.1", 0};
  options.host_names = {"marathon.mesos"};
  options.credentials = {{"root", kDoorSecret}, {std::string(kMetricsReader), kReadersSecret}};
  options.limits.wrong_secret_pause = std::chrono::milliseconds(1);
  return options;
}

class FrontDoor : public ::testing::Test {
 protected:
  /// The status of a request that is sent as it is; PORT stands for the server's.
  int send(std::string request) {
    const auto port = server_.server().tcp_address()->port;
    for (std::size_t at = 0; (at = request.find("PORT", at)) != request.npos;)
      request.replace(at, 4, std::to_string(port));
    auto connection = RawConnection::to_loopback(port);
    connection.send(request);
    return status_of(connection.receive());
  }
  int get(const std::string& target, const std::string& headers) {
    return send("GET " + target + " HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n");
  }

  ServerFixture server_{door_options()};
};

TEST_F(FrontDoor, OwnNamesWithThePortOrWithout) {
  for (const auto* host : {"127.0.0.1:PORT", "127.0.0.1", "localhost", "marathon.mesos:PORT",
                           "marathon.mesos", "Marathon.Mesos:PORT"})
    EXPECT_EQ(get("/ping", fmt::format("Host: {}\r\n", host)), 200) << host;
  for (const auto* host : {"evil.example:PORT", "evil.example", "127.0.0.1:1", "marathon.mesos:1",
                           "mesos:PORT", "marathon.mesos.evil.example:PORT", "", "10.0.0.1:PORT"})
    EXPECT_EQ(get("/ping", fmt::format("Host: {}\r\n", host)), 403) << host;
}

TEST_F(FrontDoor, ARequestWithoutAHostIsOfNoBrowserWhenItIsOfTheOldProtocol) {
  EXPECT_EQ(send("GET /ping HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(send("GET /ping HTTP/1.0\r\nHost: evil.example\r\n\r\n"), 403);
  EXPECT_EQ(send("GET /ping HTTP/1.0\r\nHost:\r\n\r\n"), 403);
  EXPECT_EQ(send("GET /ping HTTP/1.0\r\nOrigin: http://localhost:PORT\r\n\r\n"), 403);
  EXPECT_EQ(send("GET /v2/apps HTTP/1.0\r\n\r\n"), 401) << "it still needs a secret";
  EXPECT_EQ(get("/ping", ""), 403);
}

TEST_F(FrontDoor, TheNameInATargetIsHeldToTheSame) {
  EXPECT_EQ(get("http://localhost:PORT/ping", "Host: localhost:PORT\r\n"), 200);
  EXPECT_EQ(get("http://evil.example/ping", "Host: localhost:PORT\r\n"), 403);
  EXPECT_EQ(get("http://localhost:PORT/ping", "Host: evil.example\r\n"), 403);
  EXPECT_EQ(get("http://localhost:PORT@evil.example/ping", "Host: localhost:PORT\r\n"), 403);
  EXPECT_EQ(get("http://localhost:PORT/ping", ""), 403);
  EXPECT_EQ(get("/ping", "Host: localhost:PORT\r\nHost: evil.example\r\n"), 403);
  EXPECT_EQ(send("GET http://evil.example/ping HTTP/1.0\r\n\r\n"), 403);
}

TEST_F(FrontDoor, PagesOfOthersStayOut) {
  const std::string host = "Host: marathon.mesos:PORT\r\n";
  EXPECT_EQ(get("/ping", host + "Origin: http://marathon.mesos:PORT\r\n"), 200);
  EXPECT_EQ(get("/ping", host + "Origin: http://marathon.mesos\r\n"), 403);
  EXPECT_EQ(get("/ping", host + "Origin: http://evil.example\r\n"), 403);
}

TEST_F(FrontDoor, AReaderOfMetricsIsAStrangerElsewhere) {
  const auto reader = fmt::format("Host: localhost:PORT\r\nAuthorization: Bearer {}\r\n", kReadersSecret);
  EXPECT_EQ(get("/v1/metrics", reader), 422) << "he is let in, and this daemon looks at no GPUs";
  EXPECT_EQ(get("/health", reader), 200);
  EXPECT_EQ(get("/v1/nothing", reader), 404);
  for (const auto* path :
       {"/v1/tasks", "/v1/gpus", "/v1/metrics/", "/v2/apps", "/master/state", "/v1/scheduler/jobs"})
    EXPECT_NE(get(path, reader), 200) << path;
  for (const auto* path : {"/v1/tasks", "/v1/gpus", "/v2/apps", "/master/state", "/v1/scheduler/jobs"})
    EXPECT_EQ(get(path, reader), 403) << path;
  EXPECT_EQ(send("POST /api/v1/executor HTTP/1.1\r\nConnection: close\r\n" + reader +
                 "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"),
            403);
}

TEST_F(FrontDoor, BehindAProxyTheSecretComesInAHeaderOfItsOwn) {
  const auto proxied = [&](const std::string& secret) {
    return "Host: api.example.com:6443\r\nDrover-Authorization: " + secret + "\r\n";
  };
  const auto right = std::string("Bearer ") + kDoorSecret;
  EXPECT_EQ(get("/v2/apps", proxied(right)), 200);
  EXPECT_EQ(get("/v2/apps", "Host: api.example.com:6443\r\ndrover-authorization: " + right + "\r\n"), 200);
  for (const auto* path : {"/v2/apps", "/ping", "/health"}) {
    EXPECT_EQ(get(path, proxied("Bearer 0123456789abcdeg")), 401) << path;
    EXPECT_EQ(get(path, proxied("")), 401) << path << ": an empty one opens no door to other names";
    EXPECT_EQ(get(path, "Host: api.example.com:6443\r\n"), 403) << path;
    EXPECT_EQ(get(path, "Host: api.example.com:6443\r\nAuthorization: " + right + "\r\n"), 403) << path;
  }
  EXPECT_EQ(get("/v2/apps", proxied(right) + "Origin: http://evil.example\r\n"), 403);
}

TEST_F(FrontDoor, TwoSecretsAreRefusedUnlessTheyAreTheSame) {
  const std::string host = "Host: localhost:PORT\r\n";
  const auto right = std::string(": Bearer ") + kDoorSecret + "\r\n";
  const std::string wrong = ": Bearer 0123456789abcdeg\r\n";
  EXPECT_EQ(get("/v2/apps", host + "Authorization" + right + "Drover-Authorization" + right), 200);
  for (const auto* one : {"Authorization", "Drover-Authorization"})
    for (const auto* other : {"Authorization", "Drover-Authorization"}) {
      EXPECT_EQ(get("/v2/apps", host + one + right + other + wrong), 401) << one << other;
      EXPECT_EQ(get("/v2/apps", host + one + wrong + other + right), 401) << one << other;
    }
  EXPECT_EQ(get("/v2/apps", host + "Authorization" + right + "Drover-Authorization:\r\n"), 401);
}

TEST_F(FrontDoor, TheTokenOfDcosIsASecretAsAnyOther) {
  const std::string host = "Host: localhost:PORT\r\nAuthorization: ";
  EXPECT_EQ(get("/v2/apps", host + "token=" + kDoorSecret + "\r\n"), 200);
  EXPECT_EQ(get("/v2/apps", host + "Bearer " + kDoorSecret + "\r\n"), 200);
  EXPECT_EQ(get("/v2/apps", host + "token=0123456789abcdeg\r\n"), 401);
  EXPECT_EQ(get("/v2/apps", host + "token=\r\n"), 401);
}

}  // namespace
}  // namespace drover::api
