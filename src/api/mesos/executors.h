#pragma once

// The connections of executors that frameworks bring: what each is told, and what it says. All that must
// outlive the daemon is in the control state. Used on the control strand only.

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/http.h"
#include "api/mesos/media_type.h"
#include "control/executor_feed.h"
#include "engine/api.h"

namespace mesos::v1 {
class AgentInfo;
namespace executor {
class Call;
class Event;
}  // namespace executor
}  // namespace mesos::v1

namespace drover::api::mesos {

class Stream;

class Executors {
 public:
  using ExecutorCall = ::mesos::v1::executor::Call;
  using ExecutorEvent = ::mesos::v1::executor::Event;
  struct Ports {
    std::function<::mesos::v1::AgentInfo(const control::ExecutorRecord&)> describe_agent;  ///< of its own
    /// A message of an executor for its framework.
    std::function<void(const control::ExecutorRecord&, const std::string& data)> forward_message;
  };

  Executors(boost::asio::io_context& context, engine::Api& daemon, Ports ports);
  ~Executors();
  Executors(const Executors&) = delete;
  Executors& operator=(const Executors&) = delete;

  /// Nothing happens any more: that connections end now says nothing about executors.
  void stop();

  /// The answer to any call of an executor; `task` is its container, as its token says. `type`: how a stream
  /// is to be written. What is given outlives it.
  asio::awaitable<Response> call(const std::string& task, const ExecutorCall& call, MediaType type);
  /// Of its framework. Nobody hears it when the executor is not connected.
  void send_message(const control::ExecutorRecord& executor, const std::string& data);
  void on_notice(const control::Notice& notice);

 private:
  struct Connection {
    std::string task;
    std::shared_ptr<Stream> stream;
    control::ExecutorFeed feed{{}};
  };

  asio::awaitable<Response> subscribe(const control::ExecutorRecord& executor, const ExecutorCall& call,
                                      MediaType type);
  asio::awaitable<Response> update(const control::ExecutorRecord& executor, const ExecutorCall& call);
  void acknowledge(const std::string& key, const control::ExecutorUpdate& update);
  /// Launches and kills that it has not been told of yet.
  void send_pending(const std::string& key);
  void shut_down(const std::string& key);
  void close(const std::string& key);
  void gone(const std::string& key, const std::shared_ptr<Stream>& stream);

  boost::asio::io_context& context_;
  engine::Api& daemon_;
  Ports ports_;
  std::map<std::string, Connection> connections_;  ///< by executor_key()
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drover::api::mesos
