#pragma once

// The Docker Engine API, as far as Drover uses it: https://docs.docker.com/engine/api/ (v1.40 and newer; what
// speaks it at a socket, podman for one, serves as well). The version is negotiated. A value: each call is a
// connection of its own and blocks; thread safe.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "container/docker/answers.h"
#include "container/docker/exchange.h"

namespace drover::container::docker {

/// Which version of the API to speak with an engine that knows `oldest` to `newest` ("1.41"): the newest that
/// both know, or the nearest to it. kUnsupported when the engine is too old. Pure.
Result<std::string> negotiate(std::string_view oldest, std::string_view newest);

/// The name of an image with its tag apart, as POST /images/create wants it: without a tag "latest". A digest
/// counts as a tag. kInvalid for what no registry has. Pure.
struct ImageName {
  std::string name;
  std::string tag;
};
Result<ImageName> parse_image_name(std::string_view reference);

class Engine {
 public:
  /// Asks the engine at a socket for its versions.
  static Result<Engine> find(const std::string& socket);
  /// One that was found before.
  Engine(std::string socket, std::string api_version)
      : socket_(std::move(socket)), api_version_(std::move(api_version)) {}

  const std::string& socket() const { return socket_; }
  const std::string& api_version() const { return api_version_; }

  Result<Version> version() const;
  /// What of limits and the like it cannot do on this machine, in words.
  Result<std::vector<std::string>> shortcomings() const;

  /// nullopt when it has none of that name.
  Result<std::optional<ImageFacts>> inspect_image(const std::string& reference) const;
  /// `authorization` is the header X-Registry-Auth, or "". `progress` hears how far it is. kConflict when
  /// `stop` was requested.
  Status pull(const std::string& reference, const std::string& authorization,
              const std::function<void(const std::string&)>& progress, const std::stop_token& stop) const;

  /// The id of the new container. `body` is JSON.
  Result<std::string> create(const std::string& name, const std::string& body) const;
  Status start(const std::string& id, std::chrono::milliseconds timeout) const;
  /// `signal` is a name: "SIGTERM". A container that does not run is no error.
  Status kill(const std::string& id, std::string_view signal) const;
  /// nullopt when there is none.
  Result<std::optional<ContainerState>> inspect(const std::string& id) const;
  /// With what it keeps, running or not. Absent is fine.
  Status remove(const std::string& id) const;
  /// Ids of the containers that carry all these labels, running or not.
  Result<std::vector<std::string>> find_containers(const std::map<std::string, std::string>& labels) const;
  /// A file of a container, running or not, as a tar archive; "" when there is none.
  Result<std::string> copy_out(const std::string& id, const std::string& path) const;
  /// What lies at a path of a container, running or not; nullopt for nothing. The last link is not followed.
  Result<std::optional<PathStat>> stat(const std::string& id, const std::string& path) const;
  /// Whether the engine has told of such an event of the container since then: "kill", somebody sent it a
  /// signal through the engine; "oom", it had no memory left.
  Result<bool> happened(std::string_view event, const std::string& id, TimePoint since) const;

  /// The output from now on, in frames (frames.h), over an upgraded connection. Its head has come.
  Result<Exchange> attach(const std::string& id) const;
  /// The output since then, and on until it ends, in frames. Its head has come.
  Result<Exchange> follow_logs(const std::string& id, std::chrono::nanoseconds since_epoch) const;
  /// Answers when the container has ended (parse_exit_code).
  Result<Exchange> wait(const std::string& id) const;

  Result<std::string> create_exec(const std::string& container, const std::string& body) const;
  /// Its input and output over an upgraded connection: raw with a terminal, else in frames. Its head has
  /// come.
  Result<Exchange> start_exec(const std::string& exec, bool tty) const;
  Result<ExecState> inspect_exec(const std::string& exec) const;
  Status resize_exec(const std::string& exec, int rows, int columns) const;

 private:
  Request request(std::string method, const std::string& target, std::string body = "") const;
  Result<Answer> ask(std::string method, const std::string& target, std::string body = "") const;
  /// Until its head has come.
  Result<Exchange> begin(const Request& request) const;
  Result<Exchange> stream(const Request& request, std::string_view doing) const;

  std::string socket_;
  std::string api_version_;
};

}  // namespace drover::container::docker
