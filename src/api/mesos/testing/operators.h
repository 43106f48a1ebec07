#pragma once

// Operators on the wire, for tests: root, and whoever comes over TCP without a secret.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/mesos/testing/wire.h"

namespace drover::api::mesos::testing {

class OperatorTest : public WireTest {
 protected:
  explicit OperatorTest(ServerOptions options = {}) : WireTest(std::move(options)) {}
  json read(const std::string& path) {
    const auto answer = get(path);
    EXPECT_EQ(api::testing::status_of(answer), 200) << path;
    return json::parse(api::testing::body_of(answer));
  }
  /// The one of that name, in the answer at `path`.
  json framework(const std::string& path, const std::string& name) {
    const auto answer = read(path);
    for (const auto& one : answer.at("frameworks"))
      if (one.at("name") == name) return one;
    ADD_FAILURE() << "no framework " << name << " at " << path;
    return {};
  }
  void make_app(const std::string& app) {
    const auto answer = ask(post(app, "", "/v2/apps"));
    ASSERT_EQ(api::testing::status_of(answer), 201) << answer;
  }
  /// Tasks of an app that is no more, one a second.
  void add_ended(int count) {
    server_.on_strand([this, count] {
      auto& state = server_.daemon().state_;
      for (int i = 0; i < count; ++i) {
        control::TaskRecord record;
        record.task.id = fmt::format("t{}", i);
        record.task.origin = {workload::OriginKind::kService, "/old", fmt::format("old.{}", i), ""};
        record.state = control::TaskState::kFailed;
        record.finished_at = TimePoint(std::chrono::seconds(i));
        state.by_origin.edit(control::origin_of(record.task)).insert(record.task.id);
        state.tasks.insert_or_assign(record.task.id, record);
      }
      return true;
    });
  }
  std::string form(const std::string& path, const std::string& body) {
    return ask(
        fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    path, body.size(), body));
  }
};

/// Whoever comes over TCP is nobody in particular.
class StrangerTest : public OperatorTest {
 protected:
  StrangerTest() : OperatorTest(open_to_nobody()) {}
  static ServerOptions open_to_nobody() {
    ServerOptions options;
    options.listen = ListenAddress{"127.0.0.1", 0};
    options.credentials = {{"root", "0123456789abcdef0123456789abcdef"}};
    options.anonymous = User{65534, 65534, {}, "nobody", "/"};
    return options;
  }
  std::string ask_as_nobody(const std::string& method, const std::string& path,
                            const std::string& body = "") {
    const auto port = server_.server().tcp_address()->port;
    auto connection = RawConnection::to_loopback(port);
    connection.send(fmt::format(
        "{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n{}",
        method, path, port, body.size(), body));
    return connection.receive();
  }
  json read_as_nobody(const std::string& path) {
    const auto answer = ask_as_nobody("GET", path);
    EXPECT_EQ(api::testing::status_of(answer), 200) << answer;
    return json::parse(api::testing::body_of(answer));
  }
};

inline constexpr const char* kApp =
    R"({"id":"/prod/web","cmd":"sleep 9","mem":16,"cpus":0.5,"labels":{"tier":"front"},)"
    R"("portDefinitions":[{"port":0,"name":"http","protocol":"tcp"},{"port":0,"protocol":"udp,tcp"}]})";

}  // namespace drover::api::mesos::testing
