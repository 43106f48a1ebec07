#pragma once

// Who has logged in to the web page. A browser that showed a secret, or a ticket, gets a session, which is
// good for some hours: "session.<user>.<until>.<code>", where the code follows from the rest, a key that
// only the daemon has, and the user's secrets. So nobody's sessions take up memory, a daemon that starts
// again knows them, and who gets another secret, or none any more, has to log in again. Used on the control
// strand only.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/access.h"
#include "base/result.h"
#include "base/units.h"

namespace drover::api {

class Logins {
 public:
  using Time = TimePoint;
  static constexpr std::chrono::hours kSession{12};
  static constexpr std::chrono::seconds kTicket{60};
  static constexpr std::size_t kTicketsOfOne = 16;  ///< of one user; the oldest go

  /// `key` is secret.
  explicit Logins(std::string key) : key_(std::move(key)) {}
  /// Reads the key, or makes one. Refuses a file that somebody else owns or may read.
  static Result<Logins> open(const std::string& path);
  /// The secrets of TCP as they are from now on.
  void set_credentials(const std::vector<Credential>& credentials);

  struct Session {
    std::string token;
    Time until;
  };
  Session begin(const std::string& user, Time now) const;
  /// Whose session this is; nullopt when it is none, is over, or was ended.
  std::optional<std::string> user_of(std::string_view session, Time now) const;
  /// Nobody gets in with it any more, until the daemon starts again.
  void end(std::string_view session, Time now);

  /// Good once, as a secret of the user's.
  Result<std::string> ticket(const std::string& user, Time now);
  std::optional<std::string> redeem(std::string_view ticket, Time now);

 private:
  struct Ticket {
    std::string user;
    Time until;
  };
  std::string code_of(std::string_view text) const;

  std::string key_;
  std::map<std::string, std::string, std::less<>> secrets_;  ///< by user: all of his, one in a line
  std::map<std::string, Time, std::less<>> ended_;           ///< sessions, until when they would be good
  std::map<std::string, Ticket, std::less<>> tickets_;
};

}  // namespace drover::api
