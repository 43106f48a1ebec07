#include "http/page_server.h"

#include <gmock/gmock.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace drover::http {
namespace {

namespace asio = boost::asio;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class PageServerTest : public testing::Test {
 protected:
  void start(PageLimits limits = {}) {
    auto started =
        PageServer::start({"127.0.0.1", 0},
                          {{"/metrics", {"text/x", [this] { return page(); }}},
                           {"/broken", {"text/x", [] { return fail(ErrorKind::kTimeout, "it hangs"); }}},
                           {"/healthz", {"text/plain", [] { return "ok\n"; }, true}}},
                          limits);
    ASSERT_TRUE(started) << to_string(started.error());
    server_ = std::move(*started);
  }
  asio::ip::tcp::socket connect() {
    asio::ip::tcp::socket socket(context_);
    socket.connect({asio::ip::make_address("127.0.0.1"), server_->address().port});
    return socket;
  }
  /// All that comes until the server closes.
  static std::string rest(asio::ip::tcp::socket& socket) {
    std::string text;
    boost::system::error_code end;
    asio::read(socket, asio::dynamic_buffer(text), end);
    return text;
  }
  std::string ask(const std::string& request) {
    auto socket = connect();
    boost::system::error_code refused;  // before all was sent
    asio::write(socket, asio::buffer(request), refused);
    return rest(socket);
  }
  std::string get(const std::string& target) {
    return ask("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  std::string page() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !stuck_; });
    return "hello\n";
  }
  void stick(bool stuck) {
    const std::lock_guard lock(mutex_);
    stuck_ = stuck;
    changed_.notify_all();
  }

  asio::io_context context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stuck_ = false;
  std::unique_ptr<PageServer> server_;
};

TEST_F(PageServerTest, AnswersPages) {
  start();
  EXPECT_THAT(get("/metrics?x=1"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                         HasSubstr("Content-Type: text/x\r\n"), EndsWith("\r\n\r\nhello\n")));
  EXPECT_THAT(get("/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(get("/metrics/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("HEAD /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 6\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(ask("DELETE /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")));
}

TEST_F(PageServerTest, SaysWhyThereIsNoPage) {
  start();
  EXPECT_THAT(get("/broken"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("it hangs")));
}

TEST_F(PageServerTest, KeepsAConnectionForMore) {
  start();
  const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
  const auto answers = ask(request + request + "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answers, AllOf(HasSubstr("hello\nHTTP/1.1 200 OK"), EndsWith("ok\n")));
}

TEST_F(PageServerTest, RefusesWhatIsNoRequest) {
  start();
  EXPECT_THAT(ask("\x16\x03\x01\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nX: " + std::string(100000, 'x') + "\r\n\r\n"),
              testing::Not(HasSubstr("hello")));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(get("/healthz"), EndsWith("ok\n"));
}

TEST_F(PageServerTest, APageThatTakesLongHoldsUpNoOther) {
  start();
  stick(true);
  auto slow = connect();
  asio::write(slow, asio::buffer(std::string("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")));
  EXPECT_THAT(get("/healthz"), EndsWith("ok\n"));
  stick(false);
  EXPECT_THAT(rest(slow), EndsWith("hello\n"));
}

TEST_F(PageServerTest, ConnectionsThatSayNothingAreClosed) {
  start({.connections = 2, .idle_time = std::chrono::milliseconds(300)});
  auto first = connect();
  auto second = connect();
  asio::write(first, asio::buffer(std::string("GET /met")));
  EXPECT_THAT(get("/healthz"), EndsWith("ok\n"));  // waited until there was room
  EXPECT_EQ(rest(first), "");
  EXPECT_EQ(rest(second), "");
}

TEST_F(PageServerTest, SaysWhyItCannotListen) {
  start();
  const auto again = PageServer::start(server_->address(), {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kConflict);
}

}  // namespace
}  // namespace drover::http
