#pragma once

// The API server over HTTPS. Each call has a deadline; what may go better another time is tried again with
// growing pauses. Connections are kept for the next calls, as many as were needed at once. Redirects are not
// followed: they could lead the credentials astray.

#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "base/http_client.h"
#include "kube/client/api.h"
#include "kube/client/config.h"

namespace drover::kube {

struct ClientLimits {
  int attempts = 5;
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{10'000};
  std::chrono::seconds attempt{30};
  std::chrono::seconds call{60};  ///< no attempt begins later
  /// A connection that was idle for longer is not used again: servers and what stands before them close such,
  /// some after 50 s, and a request that meets that close is lost.
  std::chrono::seconds idle{30};
  std::chrono::seconds watch{300};        ///< then the server is to end it, and it is begun anew
  std::chrono::seconds watch_quiet{150};  ///< without even a bookmark, which comes every minute
};

class ApiClient : public Api {
 public:
  /// `stop` ends all calls within a second. kUnsupported when the machine has no libcurl.
  static Result<std::unique_ptr<ApiClient>> open(ServerConfig config, std::stop_token stop = {},
                                                 ClientLimits limits = {},
                                                 std::uint32_t seed = std::random_device()());

  Result<nlohmann::json> send(const ApiRequest& request, const std::stop_token& stop = {},
                              const TakeItem& take = {}) override;
  Status watch(const WatchRequest& request, const TakeEvent& take, const std::stop_token& stop) override;
  Status read(const ApiRequest& request, const TakeText& take, const std::stop_token& stop) override;
  const ServerConfig& config() const { return config_; }

 private:
  /// An answer of any status, with its whole body, unless that is a stream that was taken.
  struct Answer : HttpAnswer {
    std::string text;
  };
  ApiClient(ServerConfig config, std::stop_token stop, ClientLimits limits, std::uint32_t seed);

  struct Outcome {
    Result<Answer> answer;
    bool sent = false;  ///< the server may have the request
  };
  /// `take`: of answers 200; none: all is kept as text.
  Outcome attempt(const ApiRequest& request, const HttpLimits& limits, const std::stop_token& stop,
                  const HttpClient::Body& take);
  /// How a stream ended of which all was taken.
  static Status end_of_stream(const ApiRequest& request, const Result<Answer>& answer,
                              const std::stop_token& stop);
  Result<HttpRequest> http_request(const ApiRequest& request) const;
  Result<std::string> secret(const Secret& secret) const;
  Error transport_error(Error error) const;
  Result<HttpClient> take_connection();
  void give_back(HttpClient client);
  std::uint32_t next_seed();

  ServerConfig config_;
  std::stop_token stop_;
  ClientLimits limits_;
  std::mutex mutex_;  ///< of what follows
  struct Idle {
    HttpClient connection;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<Idle> idle_;  ///< used last at the end
  std::minstd_rand seeds_;
};

}  // namespace drover::kube
