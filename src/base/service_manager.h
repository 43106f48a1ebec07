#pragma once

// What systemd is told of the program (sd_notify(3), whose protocol is a datagram): that it serves, and that
// it lives. Without systemd nothing happens. Thread safe after the constructor.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace drover {

class ServiceManager {
 public:
  /// Takes the variables out of the environment: none of our children is the service. Before threads start.
  static ServiceManager of_environment();

  /// Lines of NAME=VALUE: "READY=1", "WATCHDOG=1", "STOPPING=1", "STATUS=…".
  void notify(std::string_view state) const;
  /// How often it wants to hear "WATCHDOG=1"; it ends and restarts a program from which it has not.
  std::optional<std::chrono::milliseconds> watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  std::optional<std::chrono::milliseconds> watchdog_;
};

}  // namespace drover
