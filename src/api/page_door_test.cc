// Whom the server lets in to the web page, over TCP and through `drover ui`, as bytes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

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
    connection.send("POST /v1/page HTTP/1.1\r\nHost: drover\r\nConnection: Upgrade\r\nUpgrade: drover-page\r\n\r\n");
    EXPECT_EQ(status_of(connection.receive("\r\n\r\n")), 101);
    connection.send(fmt::format("{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n", head, host, headers));
    return connection.receive();
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
