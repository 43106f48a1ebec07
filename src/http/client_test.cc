#include "http/client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <future>

#include "base/fake_tree.h"
#include "http/listen.h"

namespace drover::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using namespace std::chrono_literals;

constexpr std::string_view kChunked =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: "
    "chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";

TEST(AnswerTest, IsTheSameInWhateverPiecesItComes) {
  for (std::size_t cut = 0; cut <= kChunked.size(); ++cut) {
    AnswerReader answer;
    EXPECT_FALSE(answer.receive(kChunked.substr(0, cut)));
    EXPECT_FALSE(answer.receive(kChunked.substr(cut)));
    EXPECT_TRUE(answer.ended());
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.header("content-type"), "text/plain");
    EXPECT_EQ(answer.header("Other"), "");
    EXPECT_EQ(answer.take(), "hello!");
    EXPECT_EQ(answer.take(), "");
  }
}

TEST(AnswerTest, WithoutALengthLastsUntilTheConnectionEnds) {
  AnswerReader answer;
  EXPECT_FALSE(answer.receive("HTTP/1.1 404 No\r\n\r\nall of it"));
  EXPECT_FALSE(answer.ended());
  EXPECT_FALSE(answer.finish());
  EXPECT_TRUE(answer.ended());
  EXPECT_EQ(answer.take(), "all of it");
}

TEST(AnswerTest, AfterAnUpgradeIsTheOtherProtocol) {
  AnswerReader answer;
  EXPECT_FALSE(answer.receive("HTTP/1.1 101 Switching\r\nUpgrade: tcp\r\n\r\n\x01\x02"));
  EXPECT_FALSE(answer.receive("\x03"));
  EXPECT_EQ(answer.status(), 101);
  EXPECT_EQ(answer.take(), "\x01\x02\x03");
  EXPECT_FALSE(answer.ended());
  EXPECT_FALSE(answer.finish());
  EXPECT_TRUE(answer.ended());
}

TEST(AnswerTest, ThatBreaksOffIsAnError) {
  for (const auto* begun : {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"}) {
    AnswerReader answer;
    EXPECT_FALSE(answer.receive(begun));
    EXPECT_TRUE(answer.finish()) << begun;
    EXPECT_FALSE(answer.ended());
  }
}

TEST(AnswerTest, OfAnotherProtocolIsKnownByItsFirstWord) {
  for (const std::string_view answer : {"SSH-2.0-OpenSSH_9\r\n", "HTTQ/1.1 200 OK\r\n\r\n"})
    for (std::size_t first = 1; first < 6; ++first) {
      AnswerReader reader;
      const auto error = reader.receive(answer.substr(0, first));
      EXPECT_TRUE(error || reader.receive(answer.substr(first))) << answer << ' ' << first;
    }
}

TEST(AnswerTest, HasLimits) {
  const std::string much(70'000, 'x');
  AnswerReader endless;
  EXPECT_TRUE(endless.receive("HTTP/1.1 200 OK\r\nA: " + much));
  AnswerReader chunk;
  EXPECT_FALSE(chunk.receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"));
  EXPECT_TRUE(chunk.receive(much)) << "what a chunk says of itself is no more than a head";
  AnswerReader huge;
  EXPECT_FALSE(huge.receive("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\n" + much));
  EXPECT_EQ(huge.take(), much) << "nothing is set aside for what is only promised";
  AnswerReader other;
  EXPECT_TRUE(other.receive("SSH-2.0-OpenSSH_9\r\n"));
}

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() : connection_(context_.get_executor()), other_(context_) {}

  /// What is awaited, once it is done.
  template <typename T>
  T run(asio::awaitable<T> work) {
    auto done = asio::co_spawn(context_, std::move(work), asio::use_future);
    context_.restart();
    context_.run();
    return done.get();
  }
  /// The other end of the connection.
  void accept_and_say(const std::string& text) {
    other_ = acceptor_.accept();
    asio::write(other_, asio::buffer(text));
  }
  std::string received() {
    std::string text(4096, '\0');
    text.resize(other_.read_some(asio::buffer(text)));
    return text;
  }
  Server server() const { return {.socket = tree_ / "socket"}; }

  FakeTree tree_;
  asio::io_context context_;
  asio::local::stream_protocol::acceptor acceptor_{context_, {tree_ / "socket"}};
  Connection connection_;
  asio::local::stream_protocol::socket other_;
};

TEST_F(ConnectionTest, AsksAndReadsTheBody) {
  ASSERT_FALSE(run(connection_.open(server(), 20s)));
  accept_and_say(std::string(kChunked));
  ASSERT_FALSE(run(connection_.ask({.method = "POST", .target = "/a?b", .host = "h", .body = "{}"})));
  EXPECT_EQ(received(),
            "POST /a?b HTTP/1.1\r\nHost: h\r\nUser-Agent: drover\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\nConnection: close\r\n\r\n{}");
  EXPECT_EQ(connection_.answer().status(), 200);
  std::string body;
  EXPECT_FALSE(run(connection_.read_body([&](std::string_view piece) {
    body += piece;
    return true;
  })));
  EXPECT_EQ(body, "hello!");
}

TEST_F(ConnectionTest, ReadsNoMoreThanIsWanted) {
  ASSERT_FALSE(run(connection_.open(server(), 20s)));
  accept_and_say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun");
  ASSERT_FALSE(run(connection_.ask({})));
  int pieces = 0;
  EXPECT_FALSE(run(connection_.read_body([&](std::string_view) { return ++pieces < 1; })));
  EXPECT_EQ(pieces, 1);
}

TEST_F(ConnectionTest, HasALimitOfTime) {
  ASSERT_FALSE(run(connection_.open(server(), 20ms)));
  EXPECT_TRUE(is_late(run(connection_.ask({}))));
  Connection silent(context_.get_executor());
  ASSERT_FALSE(run(silent.open(server(), {})));
  other_ = acceptor_.accept();
  accept_and_say("HTTP/1.1 200 OK\r\n\r\nbegun");
  ASSERT_FALSE(run(silent.ask({})));
  EXPECT_TRUE(is_late(run(silent.read_body([](std::string_view) { return true; }, 20ms))));
}

TEST_F(ConnectionTest, IsHandedOutAfterAnUpgrade) {
  ASSERT_FALSE(run(connection_.open(server(), 20s)));
  accept_and_say("HTTP/1.1 101 Go\r\n\r\n>");
  ASSERT_FALSE(run(connection_.ask({.upgrade = "tcp"})));
  EXPECT_NE(received().find("\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"), std::string::npos);
  EXPECT_EQ(connection_.answer().take(), ">");
  const auto socket = connection_.release();
  EXPECT_EQ(::send(socket.get(), "raw", 3, MSG_NOSIGNAL), 3);
  EXPECT_EQ(received(), "raw");
}

TEST_F(ConnectionTest, GoesOnlyWhereItMay) {
  auto listening = listen_tcp(context_, {"127.0.0.1", 0});
  ASSERT_TRUE(listening);
  const auto port = listening->local_endpoint().port();
  for (const auto* host : {"127.0.0.1", "localhost"}) {
    std::string asked;
    const auto refuse = [&](const asio::ip::address& address) {
      asked = address.to_string();
      return false;
    };
    Connection refused(context_.get_executor());
    EXPECT_EQ(run(refused.open({.host = host, .port = port, .may_reach = refuse}, 20s)),
              asio::error::access_denied);
    EXPECT_NE(asked, "") << host;
  }
  EXPECT_FALSE(run(connection_.open({.host = "127.0.0.1", .port = port}, 20s)));
}

TEST_F(ConnectionTest, SaysWhyThereIsNone) {
  EXPECT_EQ(connect_unix(tree_ / "nobody", 1s).error().message(), "No such file or directory");
  EXPECT_EQ(connect_unix(std::string(200, 'x'), 1s).error().message(), "File name too long");
  acceptor_.listen(0);
  std::vector<UniqueFd> queue;
  for (;;) {
    auto next = connect_unix(tree_ / "socket", 10ms);
    if (next) {
      queue.push_back(std::move(*next));
      ASSERT_LT(queue.size(), 100U);
      continue;
    }
    EXPECT_TRUE(is_late(next.error())) << next.error().message();
    break;
  }
}

}  // namespace
}  // namespace drover::http
