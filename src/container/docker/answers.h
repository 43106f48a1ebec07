#pragma once

// What a Docker Engine answers, understood. Fields that nobody asked for are passed over: engines of other
// versions have more, or fewer. Pure; thread safe.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image.h"

namespace drover::container::docker {

struct Version {
  std::string name;     ///< "Docker Engine", "Podman Engine"
  std::string version;  ///< "20.10.24"
  std::string newest_api;
  std::string oldest_api;
  std::map<std::string, std::string> components;  ///< versions of its parts by their names: "runc"
};

struct ImageFacts {
  std::string id;
  image::Config config;
  std::vector<std::string> volumes;  ///< places that each container of it has a new volume at
};

struct ContainerState {
  std::string id;
  std::string status;  ///< "created", "running", "exited", "removing", …
  bool running = false;
  bool out_of_memory = false;
  int exit_code = 0;
  int pid = 0;        ///< on the engine's machine; 0 when it does not run
  std::string error;  ///< why it could not be started; "" mostly
  std::vector<std::string> entrypoint;
};

struct ExecState {
  bool running = false;
  int exit_code = 0;
};

Result<Version> parse_version(std::string_view text);
Result<ImageFacts> parse_image(std::string_view text);
Result<ContainerState> parse_container(std::string_view text);
Result<ExecState> parse_exec(std::string_view text);
/// The "Id" of what was created.
Result<std::string> parse_id(std::string_view text);
/// The ids in a list of containers.
Result<std::vector<std::string>> parse_ids(std::string_view text);
/// Of an answer to a wait: 0 … 255.
Result<int> parse_exit_code(std::string_view text);
/// What it lacks, from GET /info.
Result<std::vector<std::string>> parse_shortcomings(std::string_view text);
/// The "message" of a refusal, or the text itself.
std::string parse_refusal(std::string_view text);

/// What lies at a path of a container.
struct PathStat {
  enum class Kind { kFile, kFolder, kLink, kOther };
  Kind kind = Kind::kOther;
  std::uint64_t size = 0;   ///< of a file
  std::string link_target;  ///< where a link leads in the end, absolute; "" for all else

  bool operator==(const PathStat&) const = default;
};
/// The header X-Docker-Container-Path-Stat.
Result<PathStat> parse_path_stat(std::string_view header);

/// One line of the progress of a pull.
struct PullStep {
  std::string layer;  ///< "" when it is about all of it
  std::string status;
  std::uint64_t current = 0;
  std::uint64_t total = 0;
  std::string error;  ///< it ended with this; "" mostly
};
Result<PullStep> parse_pull_step(std::string_view line);

}  // namespace drover::container::docker
