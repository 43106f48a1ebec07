#pragma once

// The daemon that is measured: the real API server, engine and journal in this process, on one thread of
// their own, over containers that only exist in memory. It listens on loopback and on a unix socket in a
// temporary folder, which is removed with it.

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "api/server.h"
#include "engine/checks/checks.h"
#include "engine/local.h"

namespace drover::bench {

class Subject {
 public:
  Subject();
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  std::uint16_t port() const { return port_; }
  std::string socket() const { return folder_ / "drover.sock"; }
  /// Only within on_strand().
  engine::LocalEngine& engine() { return *engine_; }

  /// Runs it where the daemon lives, waits for it, and gives back what it gives.
  template <typename Function>
  auto on_strand(Function function) {
    std::packaged_task<std::invoke_result_t<Function>()> work(std::move(function));
    auto result = work.get_future();
    boost::asio::post(context_, std::ref(work));
    return result.get();
  }
  /// Milliseconds of a core that the daemon's thread has used.
  double cpu_ms() const;

 private:
  void start();

  std::filesystem::path folder_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(context_);
  int ids_ = 0;
  std::unique_ptr<engine::Checks> checks_;
  std::unique_ptr<engine::LocalEngine> engine_;
  std::unique_ptr<api::Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace drover::bench
