#pragma once

// The daemon's API over HTTP, on its unix socket or on TCP. Every call opens a connection of its own, so one
// Client may be used by several threads. Over https the server shows a certificate for the name that it is
// called by, or hears nothing. No redirection is followed, so nobody else is shown the token. A daemon that
// cannot be reached is kUnavailable; what it refuses comes back as the Error that it sent. One that has not
// begun to answer after a while is asked for its health besides: as long as it answers that, its answer is
// waited for, however long it takes.

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "cli/gateway.h"

namespace drover::cli {

inline constexpr std::chrono::seconds kUsualPatience{30};

struct Endpoint {
  std::string socket;   ///< path of the unix socket; used unless `url` is given
  std::string url;      ///< "http://HOST:PORT", or https
  std::string token;    ///< shown over TCP only
  std::string ca_file;  ///< the authorities that are trusted with https; "": those of this machine
  /// So long a sign of life is waited for, and for the queue of a daemon that takes no connection; 0: for
  /// ever.
  std::chrono::milliseconds patience = kUsualPatience;
  /// Behind this one, whose address `url` is: the daemon's own secret then goes in a header of its own.
  std::optional<Gateway> gateway = {};
  std::optional<Error> trouble = {};  ///< why it is not known: every call comes to that
};

/// Whether it can be the address of a daemon.
Status check(const Endpoint& endpoint);

/// Takes a piece of an answer; false ends the transfer without an error.
using Sink = std::function<bool(std::string_view piece)>;

/// A connection that has left HTTP.
struct Upgraded {
  std::shared_ptr<void> tunnel;  ///< behind `socket`, which is closed before it goes
  UniqueFd socket;
  std::string rest;  ///< what has come after the answer already
};

class Client {
 public:
  explicit Client(Endpoint endpoint);

  Result<nlohmann::json> get(const std::string& target) const;
  /// As get(), for long lists: each item of the answer's list `name` is given to `visit` and not kept.
  Result<nlohmann::json> get_items(const std::string& target, std::string_view name,
                                   const std::function<void(const nlohmann::json&)>& visit) const;
  Result<nlohmann::json> post(const std::string& target, const nlohmann::json& body) const;
  Result<nlohmann::json> patch(const std::string& target, const nlohmann::json& body) const;
  /// A null `body` sends none. An empty answer is null.
  Result<nlohmann::json> put(const std::string& target, const nlohmann::json& body) const;
  Status remove(const std::string& target) const;
  /// The same, with what is answered.
  Result<nlohmann::json> erase(const std::string& target) const;
  /// Leaves HTTP for `protocol`; `body` says what is wanted.
  Result<Upgraded> upgrade(const std::string& target, const nlohmann::json& body,
                           const std::string& protocol) const;
  /// Gives the body to `sink` piece by piece. Live answers are silent for at most 15 s: longer is an error.
  Status stream(const std::string& target, const std::string& last_event_id, const Sink& sink) const;
  /// The same for the live answer to a request with a body.
  Status stream_post(const std::string& target, const nlohmann::json& body, const Sink& sink) const;

 private:
  struct Call;
  Result<nlohmann::json> send(Call call, const nlohmann::json& body) const;
  Result<std::string> fetch(const Call& call) const;
  Result<nlohmann::json> read_answer(const std::string& answer) const;
  Status perform(const Call& call, const Sink& sink) const;

  Endpoint endpoint_;
};

/// What a refusal says, be it in the daemon's own form, Marathon's or Chronos': the Error that it carries.
Error read_refusal(unsigned status, const std::string& body);

/// For path segments and query values (RFC 3986).
std::string percent_encode(std::string_view text);

}  // namespace drover::cli
