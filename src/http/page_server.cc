#include "http/page_server.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <thread>
#include <utility>

namespace drover::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using Parser = beast::http::request_parser<beast::http::empty_body>;
using Answer = beast::http::response<beast::http::string_body>;

constexpr std::uint32_t kHeaderBytes = 8192;
constexpr std::chrono::milliseconds kAcceptPause{100};

Answer answer_of(beast::http::status status, std::string body, std::string_view type) {
  Answer answer(status, 11);
  answer.set(beast::http::field::server, "drover");
  answer.set(beast::http::field::content_type, type);
  answer.set(beast::http::field::cache_control, "no-store");
  answer.body() = std::move(body);
  return answer;
}

Answer error_of(beast::http::status status, std::string sentence) {
  return answer_of(status, std::move(sentence) + "\n", "text/plain; charset=utf-8");
}

}  // namespace

struct PageServer::Parts {
  Parts(std::map<std::string, Page> the_pages, const PageLimits& the_limits)
      : pages(std::move(the_pages)), limits(the_limits), acceptor(context) {}

  const std::map<std::string, Page> pages;
  const PageLimits limits;
  asio::io_context context{1};
  asio::thread_pool maker{1};
  tcp::acceptor acceptor;
  std::size_t open = 0;  ///< connections; the context's thread's
  std::thread thread;

  asio::awaitable<void> accept() {
    for (;;) {
      boost::system::error_code error;
      auto socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (!error) {
        ++open;
        asio::co_spawn(context, serve(beast::tcp_stream(std::move(socket))),
                       [this](const std::exception_ptr&) { --open; });
      }
      // Out of descriptors, most likely, or of connections: others wait in the kernel's queue.
      while (error || open >= limits.connections) {
        error = {};
        asio::steady_timer timer(context, kAcceptPause);
        co_await timer.async_wait(asio::use_awaitable);
      }
    }
  }

  /// An exception ends the connection: it broke, or took too long.
  asio::awaitable<void> serve(beast::tcp_stream stream) {
    beast::flat_buffer buffer(2 * kHeaderBytes);
    for (bool more = true; more;) {
      Parser parser;
      parser.header_limit(kHeaderBytes);
      parser.body_limit(0);
      stream.expires_after(limits.idle_time);
      boost::system::error_code error;
      co_await beast::http::async_read(stream, buffer, parser,
                                       asio::redirect_error(asio::use_awaitable, error));
      const bool bad =
          error.category() == beast::http::make_error_code(beast::http::error::bad_method).category();
      if (error == beast::http::error::end_of_stream || (error && !bad)) break;
      auto answer =
          error ? error_of(beast::http::status::bad_request, "this is no request that can be answered")
                : co_await answer_to(parser.get());
      const bool head = !error && parser.get().method() == beast::http::verb::head;
      more = !error && parser.get().keep_alive();
      answer.keep_alive(more);
      answer.prepare_payload();
      if (head) answer.body().clear();
      stream.expires_after(limits.write_time);
      co_await beast::http::async_write(stream, answer, asio::use_awaitable);
    }
    boost::system::error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  asio::awaitable<Answer> answer_to(const Parser::value_type& request) {
    using beast::http::status;
    const std::string_view target(request.target().data(), request.target().size());
    const auto page = pages.find(std::string(target.substr(0, target.find('?'))));
    if (page == pages.end()) co_return error_of(status::not_found, "there is no such page here");
    const auto method = request.method();
    if (method != beast::http::verb::get && method != beast::http::verb::head) {
      auto refused = error_of(status::method_not_allowed, "this page can only be read");
      refused.set(beast::http::field::allow, "GET, HEAD");
      co_return refused;
    }
    const auto& make = page->second.make;
    auto body = page->second.instant ? make() : co_await made_by(make);
    if (!body) co_return error_of(status::service_unavailable, to_string(body.error()));
    co_return answer_of(status::ok, std::move(*body), page->second.content_type);
  }

  asio::awaitable<Result<std::string>> made_by(const std::function<Result<std::string>()>& make) {
    auto making =
        [](const std::function<Result<std::string>()>* page) -> asio::awaitable<Result<std::string>> {
      co_return (*page)();
    };
    co_return co_await asio::co_spawn(maker, making(&make), asio::use_awaitable);
  }
};

Result<std::unique_ptr<PageServer>> PageServer::start(const ListenAddress& address,
                                                      std::map<std::string, Page> pages,
                                                      const PageLimits& limits) {
  auto parts = std::make_unique<Parts>(std::move(pages), limits);
  DROVER_TRY(parts->acceptor, listen_tcp(parts->context, address));
  asio::co_spawn(parts->context, parts->accept(), asio::detached);
  parts->thread = std::thread([&context = parts->context] { context.run(); });
  return std::unique_ptr<PageServer>(new PageServer(std::move(parts)));
}

PageServer::PageServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

PageServer::~PageServer() {
  parts_->maker.join();
  parts_->context.stop();
  parts_->thread.join();
}

ListenAddress PageServer::address() const {
  const auto endpoint = parts_->acceptor.local_endpoint();
  return {endpoint.address().to_string(), endpoint.port()};
}

}  // namespace drover::http
