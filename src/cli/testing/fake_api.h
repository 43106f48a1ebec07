#pragma once

// A daemon made of answers: each request is handed to a function of the test, and what was asked is kept.

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace drover::cli::testing {

class FakeApi {
 public:
  struct Asked {
    std::string method;
    std::string target;
    std::string body;
  };
  struct Answer {
    unsigned status = 200;
    std::string body;
  };
  using Handler = std::function<Answer(const Asked&)>;

  FakeApi(std::string socket, Handler handler)
      : socket_((std::filesystem::remove(socket), std::move(socket))),
        handler_(std::move(handler)),
        acceptor_(context_, Protocol::endpoint(socket_)),
        thread_([this] { serve(); }) {}
  ~FakeApi() {
    stopping_ = true;
    Protocol::socket wake(context_);
    boost::system::error_code ignored;
    wake.connect(Protocol::endpoint(socket_), ignored);
    thread_.join();
    std::filesystem::remove(socket_);
  }

  const std::string& socket() const { return socket_; }
  /// "PUT /v2/apps?partialUpdate=false [...]" of all that changed something, in order.
  std::vector<std::string> changes() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& asked : asked_)
      if (asked.method != "GET")
        all.push_back(asked.method + " " + asked.target + (asked.body.empty() ? "" : " " + asked.body));
    return all;
  }

 private:
  using Protocol = boost::asio::local::stream_protocol;

  void serve() {
    namespace http = boost::beast::http;
    for (;;) {
      Protocol::socket peer(context_);
      boost::system::error_code error;
      acceptor_.accept(peer, error);
      if (stopping_ || error) return;
      boost::beast::flat_buffer buffer;
      http::request<http::string_body> request;
      http::read(peer, buffer, request, error);
      if (error) continue;
      const Asked asked{std::string(request.method_string()), std::string(request.target()), request.body()};
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(asked);
      }
      const auto answer = handler_(asked);
      http::response<http::string_body> response(http::int_to_status(answer.status), 11);
      response.body() = answer.body;
      response.keep_alive(false);
      response.prepare_payload();
      http::write(peer, response, error);
    }
  }

  std::string socket_;
  Handler handler_;
  boost::asio::io_context context_{1};
  Protocol::acceptor acceptor_;
  std::mutex mutex_;
  std::vector<Asked> asked_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  ///< last: it uses all the others
};

}  // namespace drover::cli::testing
