#pragma once

// What a handler gets and gives: requests and responses as values, without the HTTP library. A Response is
// either whole (`body`) or live (`stream`: a coroutine that writes pieces until it returns).

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/api.h"

namespace drover::api {

namespace asio = boost::asio;

struct Request {
  std::string method;
  std::vector<std::string> segments;         ///< of the path, decoded: "/v1/tasks" is {"v1", "tasks"}
  std::map<std::string, std::string> query;  ///< decoded; of two with one name, the last one
  std::vector<std::pair<std::string, std::string>> query_list;  ///< the same, all as they came
  std::map<std::string, std::string> parameters;                ///< what the route's {names} stand for
  std::map<std::string, std::string> headers;                   ///< names in lower case; of two, the last one
  std::string content_type;
  std::string last_event_id;
  std::string body;
  /// Nobody only on routes that are open to strangers, or to executors.
  std::optional<engine::Caller> caller;
  /// The task that is the container of the executor who asks (executor_tokens.h), which has not ended; "":
  /// none does.
  std::string executor;
  bool logged_in = false;       ///< by a session (logins.h), which makes no others
  bool metrics_reader = false;  ///< a stranger but for routes that are for_metrics
};

/// Takes the pieces of a live response. Throws boost::system::system_error when the client is gone.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  virtual asio::awaitable<void> write(std::string piece) = 0;
};

/// Both ways of a connection that has left HTTP. Throws as BodyWriter does.
class Duplex : public BodyWriter {
 public:
  /// What has come; "" when the client has said all, or is gone.
  virtual asio::awaitable<std::string> read() = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";  ///< "" for none
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::function<asio::awaitable<void>(BodyWriter&)> stream;
  /// With status 101: what follows on the connection, which is closed when it returns.
  std::function<asio::awaitable<void>(Duplex&)> upgrade;
  /// With status 101: what follows are requests of a page in the caller's browser, who has to log in.
  bool opens_page = false;
  bool opens_socket = false;                   ///< what follows is one request in a WebSocket (web_socket.h)
  std::optional<std::uint64_t> stream_length;  ///< when it is known before
  bool read_only = false;                      ///< nothing changed, whatever the method: not for the audit
  std::shared_ptr<void> share;                 ///< of what is on its way to the caller, when it is counted
};

/// Whether the client asks to leave HTTP for this protocol.
Status check_upgrade(const Request& request, const std::string& protocol);
/// Leaves it.
Response upgrade_response(const std::string& protocol,
                          std::function<asio::awaitable<void>(Duplex&)> conversation);

Response json_response(const nlohmann::json& value, int status = 200);
/// {"error": {"kind", "message", "hint", "path"}}; the status follows from the kind unless it is given.
Response error_response(const Error& error, std::optional<int> status = std::nullopt);

/// Splits a request target into decoded segments and query: "/path?query", or the same behind
/// "http://authority" (RFC 9112, 3.2.2). Refuses what RFC 3986 does not allow, but for brackets, braces and
/// bars in the query, which programs send as they are.
Status parse_target(std::string_view target, Request& request);
/// "gpu1:8080" of "http://gpu1:8080/path"; "" of a target that is only a path.
std::string_view target_authority(std::string_view target);

/// Reads query parameters and gathers all mistakes, unknown parameters among them.
class Query {
 public:
  explicit Query(const Request& request) : query_(&request.query), list_(&request.query_list) {}

  std::string text(const std::string& name, std::string fallback = "");
  std::int64_t integer(const std::string& name, std::int64_t min, std::int64_t max, std::int64_t fallback);
  bool boolean(const std::string& name, bool fallback);
  /// All of that name; each is a mistake that `check` refuses.
  std::vector<std::string> texts(const std::string& name,
                                 const std::function<Status(const std::string&)>& check);
  std::optional<TimePoint> time(const std::string& name);
  /// Every mistake at once.
  Status finish();

 private:
  const std::string* find(const std::string& name);

  void refuse(const std::string& name, Error error);

  const std::map<std::string, std::string>* query_;
  const std::vector<std::pair<std::string, std::string>>* list_;
  std::set<std::string> known_;
  std::vector<Error> mistakes_;
};

}  // namespace drover::api
