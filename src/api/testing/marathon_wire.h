#pragma once

// The Marathon API as bytes, over a daemon whose containers never come, for its tests.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api::testing {

struct Got {
  int status = 0;
  std::string head;
  std::string text;
  nlohmann::json body() const { return nlohmann::json::parse(text); }
  std::string message() const { return body().at("message"); }
};

class MarathonWire : public ::testing::Test {
 protected:
  Got ask(const std::string& method, const std::string& target, const std::string& body = "",
          const std::string& more = "") {
    const auto answer = server_.exchange(method, target, body, more + std::string(ServerFixture::kOfJson));
    return {status_of(answer), answer.substr(0, answer.find("\r\n\r\n") + 2), body_of(answer)};
  }

  /// Those that are asked to.
  void end_instances() { end_instances(control::TaskState::kStopping, 143); }
  void end_instances(control::TaskState state, int status) {
    server_.on_strand([this, state, status] {
      auto& daemon = server_.daemon();
      std::vector<std::string> ids;
      for (const auto& [id, task] : daemon.state().tasks)
        if (task.state == state) ids.push_back(id);
      for (const auto& id : ids) {
        workload::Ending ending;
        ending.exit_status = status;
        ending.stopped = state == control::TaskState::kStopping;
        ending.finished_at = daemon.now();
        (void)daemon.change(control::event::Ended{id, ending});
      }
    });
  }
  void later() {
    server_.on_strand([this] { server_.daemon().now_ += std::chrono::seconds(10); });
  }

  ServerFixture server_;
};

inline constexpr const char* kWeb = R"({"id": "/shop/web", "cmd": "sleep 1000", "mem": 16, "cpus": 0.1})";

}  // namespace drover::api::testing
