#pragma once

// Posts JSON to URLs that users name: how runs of schedules ended. Has a thread of its own, so nobody waits
// for a server that hangs, and nothing is kept over a restart. A redirect is not followed, and link-local
// addresses, where clouds keep their machines' credentials, are not reached, whatever name resolves to them.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "workload/webhook.h"

namespace drover::engine {

struct WebhookMessage {
  workload::Webhook to;
  std::string body;  ///< JSON
  std::string run;   ///< that it tells of, by its id: for the log
};

struct WebhookOptions {
  std::chrono::milliseconds timeout{10'000};  ///< of one try, once the address is known
  int tries = 3;
  /// Before the second try at most, and before each further one twice as long (base/pause.h).
  std::chrono::milliseconds pause{5'000};
  std::size_t most_waiting = 1000;  ///< of messages that have not been answered; more are dropped
  int most_at_once = 16;
  std::function<void(const std::string&)> log;  ///< one sentence; called on the sender's thread
};

/// Thread safe.
class Webhooks {
 public:
  explicit Webhooks(WebhookOptions options);
  /// What has not been sent is dropped.
  ~Webhooks();
  Webhooks(const Webhooks&) = delete;
  Webhooks& operator=(const Webhooks&) = delete;

  /// Returns at once. False, and nothing is sent, when too many wait already.
  bool send(WebhookMessage message);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether this address is nobody's business: link-local ones, multicast, and what names no host.
bool is_forbidden_address(const std::string& address);

}  // namespace drover::engine
