#pragma once

// Frameworks on the wire, for tests: what is sent and received is bytes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "api/mesos/record_io.h"
#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api::mesos::testing {

using api::testing::RawConnection;
using api::testing::ServerFixture;
using nlohmann::json;

inline std::string post(const std::string& body, const std::string& headers = "",
                        const std::string& path = "/api/v1/scheduler") {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}", path,
      body.size(), headers, body);
}

/// A subscription: reads chunk by chunk, for each record is one.
class Subscription {
 public:
  Subscription(const std::string& socket, const std::string& body, const std::string& headers = "",
               const std::string& path = "/api/v1/scheduler")
      : connection_(RawConnection::to_unix(socket)) {
    connection_.send(post(body, headers, path));
    head = read_until("\r\n\r\n");
  }
  /// The answer to a request that is sent as it is.
  Subscription(RawConnection connection, const std::string& request) : connection_(std::move(connection)) {
    connection_.send(request);
    head = read_until("\r\n\r\n");
  }
  /// One record without its length; "" when the stream has ended.
  std::string record() {
    const auto size = std::stoul(read_until("\r\n"), nullptr, 16);
    if (size == 0) return "";
    std::string chunk = read_bytes(size);
    read_bytes(2);
    RecordDecoder decoder(1 << 20);
    const auto records = decoder.feed(chunk);
    EXPECT_TRUE(records && records->size() == 1 && decoder.between_records())
        << "a chunk is a record: " << chunk;
    return records->front();
  }
  json event() { return json::parse(record()); }
  /// The next event of that type; others are skipped.
  json event(const std::string& type) {
    while (true)
      if (auto next = event(); next.at("type") == type) return next;
  }
  void close() { connection_.close(); }

  std::string header(const std::string& name) const {
    const auto begin = head.find("\r\n" + name + ": ") + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  std::string head;

 private:
  std::string read_until(const std::string& end) {
    while (buffer_.find(end) == std::string::npos) more(end);
    return read_bytes(buffer_.find(end) + end.size());
  }
  std::string read_bytes(std::size_t size) {
    while (buffer_.size() < size) more("");
    auto bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
  }
  void more(const std::string&) {
    const auto piece = connection_.receive_some();
    if (piece.empty()) throw std::runtime_error("the stream ended: " + buffer_);
    buffer_ += piece;
  }
  RawConnection connection_;
  std::string buffer_;
};

inline const std::string kSubscribe =
    R"({"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"test","failover_timeout":60.0,)"
    R"("capabilities":[{"type":"GPU_RESOURCES"},{"type":"PARTITION_AWARE"}]}}})";

class WireTest : public ::testing::Test {
 protected:
  explicit WireTest(ServerOptions options = {}) : server_(std::move(options)) {
    auto node = server_.daemon().state().machine();
    node.inventory = server_.daemon().inventory();
    node.attributes = {{"gpu_model", {"Tesla K40m"}}, {"rack", {"7"}}};
    happens(control::event::NodeChanged{std::move(node)});
  }
  Subscription subscribe(const std::string& body = kSubscribe) { return {server_.socket(), body}; }
  std::string ask(const std::string& bytes) {
    auto connection = RawConnection::to_unix(server_.socket());
    connection.send(bytes);
    auto answer = connection.receive("\r\n\r\n");
    const auto length = answer.find("Content-Length: ");
    const auto whole = answer.find("\r\n\r\n") + 4 + std::stoul(answer.substr(length + 16));
    while (answer.size() < whole) answer += connection.receive_some();
    return answer;
  }
  /// The answer to a call of a framework.
  std::string call(const Subscription& subscription, const std::string& framework, json body) {
    body["framework_id"] = {{"value", framework}};
    return ask(post(body.dump(), "Mesos-Stream-Id: " + subscription.header("Mesos-Stream-Id") + "\r\n"));
  }
  static json task_info(const json& offer, const std::string& id, double gpus, double cpus = 0.5) {
    return {{"name", id},
            {"task_id", {{"value", id}}},
            {"agent_id", offer.at("agent_id")},
            {"resources",
             {{{"name", "cpus"}, {"type", "SCALAR"}, {"scalar", {{"value", cpus}}}},
              {{"name", "mem"}, {"type", "SCALAR"}, {"scalar", {{"value", 32.0}}}},
              {{"name", "gpus"}, {"type", "SCALAR"}, {"scalar", {{"value", gpus}}}}}},
            {"command", {{"value", "sleep 1"}}}};
  }
  static json accept(const json& offer, json task_infos) {
    return {{"type", "ACCEPT"},
            {"accept",
             {{"offer_ids", json::array({offer.at("id")})},
              {"operations",
               json::array({{{"type", "LAUNCH"}, {"launch", {{"task_infos", std::move(task_infos)}}}}})}}}};
  }
  static json acknowledge(const json& status) {
    return {{"type", "ACKNOWLEDGE"},
            {"acknowledge",
             {{"agent_id", status.at("agent_id")},
              {"task_id", status.at("task_id")},
              {"uuid", status.at("uuid")}}}};
  }
  void happens(const control::Event& event) {
    EXPECT_TRUE(server_.on_strand([&] { return server_.daemon().change(event).has_value(); }));
  }
  /// The status of the next update.
  static json status(Subscription& stream) { return stream.event("UPDATE").at("update").at("status"); }
  /// The id of a framework, out of its first event.
  static std::string id_of(Subscription& stream) {
    return stream.event("SUBSCRIBED").at("subscribed").at("framework_id").at("value");
  }
  static json offer_of(Subscription& stream) {
    return stream.event("OFFERS").at("offers").at("offers").at(0);
  }
  std::string get(const std::string& path) {
    return ask(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
  }
  /// Drover's id of the only task.
  std::string task() {
    return server_.on_strand([this] { return server_.daemon().state().tasks.begin()->first; });
  }

  ServerFixture server_;
};

}  // namespace drover::api::mesos::testing
