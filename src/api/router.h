#pragma once

// The table of routes and the way through it. One table is the whole truth: docs/openapi.yaml is held against
// it by a test. Used on the control strand only.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "engine/api.h"
#include "metrics/gpu_metrics.h"
#include "metrics/histogram.h"

namespace drover::engine {
class Images;
}

namespace drover::api {

namespace marathon_v2 {
struct Parts;
}
class AnswerShares;
class Logins;
class Typing;
struct Workers;
namespace mesos {
class Master;
}

/// Finds out what the GPUs do, without who has them, and answers on the control strand.
/// Adds what the program knows of itself and the daemon does not.
using AddFacts = std::function<void(metrics::DaemonFacts&)>;

/// What has come in since the start.
struct Tally {
  std::map<int, std::uint64_t> answers;                  ///< by HTTP status
  metrics::Histogram answer_times{metrics::kDurations};  ///< Session: until they begin
  std::uint64_t refused_connections = 0;
};

/// Owners of shares are {{"task_id", …}} alone.
using MeasureGpus = std::function<void(std::function<void(metrics::MachineFacts)> done)>;

/// What handlers work with. Outlives every request.
struct Services {
  engine::Api* daemon = nullptr;
  engine::Decisions* decisions = nullptr;  ///< the daemon, or a dry run, which has nothing but these
  Workers* workers = nullptr;              ///< for everything that may block
  std::string version;
  std::string address;  ///< "gpu1:8080": where the API is found over TCP; the machine's name alone without it
  marathon_v2::Parts* marathon = nullptr;
  mesos::Master* mesos = nullptr;
  engine::Images* images = nullptr;
  MeasureGpus measure_gpus;
  AddFacts add_facts;
  Tally* tally = nullptr;
  AnswerShares* answers = nullptr;
  Typing* typing = nullptr;
  Logins* logins = nullptr;                                              ///< none: nobody logs in
  workload::NetworkMode default_network = workload::NetworkMode::kHost;  ///< of tasks that name none
};

using Handler = asio::awaitable<Result<Response>> (*)(const Services&, const Request&);

struct Route {
  std::string_view method;  ///< "*" for all: the handler itself answers those that it does not know
  std::string_view path;    ///< "/v1/tasks/{id}"; a {name} is one segment, a {name...} one or more
  Handler handler = nullptr;
  bool open = false;             ///< also to those who have not shown who they are
  bool raw = false;              ///< bodies of any type; the handler answers wrong ones
  std::uint64_t body_bytes = 0;  ///< the most that a body may have; 0 is what the server allows in general
  bool for_executors = false;    ///< what executors of frameworks may call; the handler refuses all others
  bool for_metrics = false;      ///< root's view also to those whose secret is good for that alone
};

/// The largest body that one of the routes allows at this path by this method, or 0 when none says.
std::uint64_t body_limit(std::span<const Route> routes, const Request& request);

/// Answers every request, the wrong ones too: 404, 405 with Allow, 415, 401, and errors of handlers as JSON.
/// HEAD goes wherever GET does; the server leaves the body out.
asio::awaitable<Response> route(std::span<const Route> routes, const Services& services, Request request);

/// Makes a Handler of a function that answers at once.
template <Result<Response> (*function)(const Services&, const Request&)>
asio::awaitable<Result<Response>> at_once(const Services& services, const Request& request) {
  co_return function(services, request);
}

}  // namespace drover::api
