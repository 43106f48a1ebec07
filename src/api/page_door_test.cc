// Whom the server lets in to the web page, over TCP and through `drover ui`, as bytes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <nlohmann/json.hpp>
#include <vector>

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

constexpr const char* kPageSecret = "0123456789abcdef";

ServerOptions page_options() {
  ServerOptions options;
  options.listen = ListenAddress{"127.0.0.1", 0};
  options.credentials = {{"root", kPageSecret}, {"nobody", "nobody's own secret"}};
  options.limits.wrong_secret_pause = std::chrono::milliseconds(1);
  options.logins = Logins(std::string(64, 'a'));
  return options;
}

class PageDoor : public ::testing::Test {
 protected:
  std::string over_tcp(const std::string& head, const std::string& headers = "") {
    const auto port = server_.server().tcp_address()->port;
    auto connection = RawConnection::to_loopback(port);
    connection.send(
        fmt::format("{} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n{}\r\n", head, port, headers));
    return connection.receive();
  }
  /// A request of a page that `drover ui` of the user of this process shows.
  std::string through_ui(const std::string& head, const std::string& headers,
                         const std::string& host = "127.0.0.1:4711") {
    auto connection = RawConnection::to_unix(server_.socket());
    connection.send(
        "POST /v1/page HTTP/1.1\r\nHost: drover\r\nConnection: Upgrade\r\nUpgrade: drover-page\r\n\r\n");
    EXPECT_EQ(status_of(connection.receive("\r\n\r\n")), 101);
    connection.send(
        fmt::format("{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n", head, host, headers));
    return connection.receive();
  }
  /// What comes by a WebSocket until it ends, or so many messages.
  std::vector<std::string> by_socket(const std::string& first, std::size_t most = 10,
                                     const std::string& origin = "") {
    namespace websocket = boost::beast::websocket;
    boost::asio::io_context context;
    boost::asio::ip::tcp::socket socket(context);
    const auto port = server_.server().tcp_address()->port;
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    websocket::stream<boost::asio::ip::tcp::socket> stream(std::move(socket));
    stream.set_option(websocket::stream_base::decorator([&](websocket::request_type& request) {
      if (!origin.empty()) request.set(boost::beast::http::field::origin, origin);
    }));
    boost::system::error_code error;
    stream.handshake(fmt::format("localhost:{}", port), "/v1/socket", error);
    std::vector<std::string> heard;
    if (!error) stream.write(boost::asio::buffer(first), error);
    while (!error && heard.size() < most) {
      boost::beast::flat_buffer buffer;
      stream.read(buffer, error);
      if (!error) heard.emplace_back(static_cast<const char*>(buffer.cdata().data()), buffer.size());
    }
    return heard;
  }
  static std::string order(const std::string& token, const std::string& path) {
    return json{{"path", path}, {"authorization", "Bearer " + token}}.dump();
  }
  static std::string bearer(const std::string& token) {
    return fmt::format("Authorization: Bearer {}\r\n", token);
  }
  std::string session(const std::string& secret = kPageSecret) {
    return json::parse(body_of(over_tcp("POST /v1/login", bearer(secret)))).value("token", "");
  }
  std::string ticket() {
    return json::parse(body_of(server_.exchange("POST", "/v1/tickets"))).value("ticket", "");
  }

  ServerFixture server_{page_options()};
};

TEST_F(PageDoor, WhoShowsASecretGetsASessionWhichOpensAllButAnother) {
  const auto token = session();
  ASSERT_EQ(token.rfind("session.root.", 0), 0U) << token;
  EXPECT_EQ(json::parse(body_of(over_tcp("GET /v1/whoami", bearer(token)))).value("name", ""), "root");
  EXPECT_EQ(status_of(over_tcp("GET /v1/tasks", bearer(token))), 200);
  EXPECT_EQ(status_of(over_tcp("POST /v1/login", bearer(token))), 403);
  EXPECT_EQ(status_of(over_tcp("GET /v1/tasks", bearer(token + "0"))), 401);
  EXPECT_EQ(status_of(over_tcp("GET /v1/tasks")), 401);
  EXPECT_EQ(status_of(over_tcp("GET /v1/tasks?token=" + token)), 401) << "no secret in an address";
  EXPECT_EQ(status_of(over_tcp("GET /v1/tasks", "Cookie: drover-session=" + token + "\r\n")), 401);
}

TEST_F(PageDoor, WhoHasLoggedOutIsOut) {
  const auto token = session();
  EXPECT_EQ(status_of(over_tcp("POST /v1/logout", bearer(token) + "Drover-Session: " + token + "\r\n")), 204);
  EXPECT_EQ(status_of(over_tcp("GET /v1/tasks", bearer(token))), 401);
}

TEST_F(PageDoor, ATicketOpensOnce) {
  const auto made = ticket();
  const auto answer = through_ui("POST /v1/login", bearer(made));
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(status_of(through_ui("POST /v1/login", bearer(made))), 401);
  const auto token = json::parse(body_of(answer)).value("token", "");
  EXPECT_EQ(status_of(through_ui("GET /v1/tasks", bearer(token))), 200);
}

TEST_F(PageDoor, ThePageOfOneUserIsNotForOthersOrOtherSites) {
  const auto token = session();
  EXPECT_EQ(status_of(through_ui("GET /v1/tasks", "")), 401) << "the port here is open to all users";
  EXPECT_EQ(status_of(through_ui("GET /v1/tasks", bearer(kPageSecret))), 401) << "secrets are for TCP";
  EXPECT_EQ(status_of(through_ui("GET /v1/tasks", bearer(session("nobody's own secret")))), 403);
  EXPECT_EQ(status_of(through_ui("GET /ui/", "", "evil.example:4711")), 403);
  EXPECT_EQ(status_of(through_ui("GET /v1/tasks", bearer(token) + "Origin: http://evil.example\r\n")), 403);
  EXPECT_EQ(status_of(through_ui("GET /v1/tasks", bearer(token) + "Origin: http://127.0.0.1:4711\r\n")), 200);
}

TEST_F(PageDoor, ASocketCarriesOneAnswerOfWhoShowsWhoHeIs) {
  const auto token = session();
  const auto whole = by_socket(order(token, "/v1/whoami"));
  ASSERT_EQ(whole.size(), 1U);
  const auto head = json::parse(whole[0]);
  EXPECT_EQ(head.value("status", 0), 200);
  EXPECT_EQ(json::parse(head.value("body", "")).value("name", ""), "root");
  const auto live = by_socket(order(kPageSecret, "/v1/gpus?follow=true"), 2);
  ASSERT_EQ(live.size(), 2U);
  EXPECT_EQ(json::parse(live[0]), json({{"status", 200}}));
  EXPECT_EQ(live[1].rfind("event: gpus\n", 0), 0U) << live[1];
}

TEST_F(PageDoor, ASocketIsNothingForOthers) {
  const auto token = session();
  const auto status = [&](const std::string& first) {
    const auto heard = by_socket(first);
    return heard.empty() ? 0 : json::parse(heard[0]).value("status", 0);
  };
  EXPECT_EQ(status(R"({"path": "/v1/whoami"})"), 401);
  EXPECT_EQ(status(order(token + "0", "/v1/whoami")), 401);
  EXPECT_EQ(status(order(token, "/v1/nowhere")), 404);
  EXPECT_EQ(status(order(token, "no path")), 400);
  for (const auto* wrong : {"", "nonsense", "[]", R"({"method": "", "path": "/"})",
                            R"({"path": "/", "x": 1})", "{\"path\": \"/v1/whoami\\r\\nAuthorization: x\"}"})
    EXPECT_GE(status(wrong), 400) << wrong;
  EXPECT_EQ(
      status(
          R"({"method": "POST", "path": "/v1/page", "protocol": "drover-page", "authorization": "Bearer )" +
          token + "\"}"),
      400);
  EXPECT_EQ(
      status(json{{"path", "/v1/socket"}, {"protocol", "websocket"}, {"authorization", "Bearer " + token}}
                 .dump()),
      400);
  EXPECT_TRUE(by_socket(order(token, "/v1/whoami"), 1, "http://evil.example").empty());
  EXPECT_EQ(status_of(over_tcp("GET /v1/socket")), 400) << "without the upgrade";
}

TEST_F(PageDoor, TheFilesAreForAllAndBringNothingOfOthers) {
  const auto index = over_tcp("GET /ui/");
  if (status_of(index) == 404) GTEST_SKIP() << "this build has no page: Node.js is missing";
  EXPECT_EQ(status_of(index), 200);
  EXPECT_THAT(index, HasSubstr("default-src 'none'; script-src 'self'"));
  EXPECT_THAT(index, HasSubstr("Content-Encoding: gzip"));
  EXPECT_EQ(status_of(over_tcp("GET /ui")), 200);
  EXPECT_EQ(status_of(over_tcp("GET /ui/tasks/0123")), 200) << "an address of a view";
  EXPECT_EQ(status_of(over_tcp("GET /ui/main-00000000.js")), 404) << "of another version";
  EXPECT_EQ(status_of(over_tcp("GET /ui/../v1/tasks")), 404);
  const auto tag = index.find("ETag: ");
  const auto known = index.substr(tag + 6, index.find('\r', tag) - tag - 6);
  EXPECT_EQ(status_of(over_tcp("GET /ui/", "If-None-Match: " + known + "\r\n")), 304);
}

}  // namespace
}  // namespace drover::api
