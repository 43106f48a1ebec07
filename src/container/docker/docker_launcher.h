#pragma once

// The way of a Docker Engine: images are the engine's own, and so is the container; the shim has it made
// from the launch, and keeps logs and exit status as for any task. Thread safe for different folders.

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "container/cgroup.h"
#include "container/docker/engine.h"
#include "container/docker/image_probe.h"
#include "container/launcher.h"

namespace drover::container::docker {

inline constexpr const char* kDefaultSocket = "/var/run/docker.sock";

struct DockerOptions {
  std::string state;  ///< the state folder
  std::string socket = kDefaultSocket;
  LauncherOptions launching;                    ///< `hidden` gets the state folder in any case
  std::chrono::milliseconds patience{300'000};  ///< of shims with an engine that does not answer
};

class DockerLauncher final : public Launcher {
 public:
  /// Does not ask for the engine: prepare() does, and says when it does not answer.
  static Result<std::unique_ptr<DockerLauncher>> create(DockerOptions options);

  Status prepare(const Directory& folder, const Launch& launch) const override;
  Status clear(const Directory& folder, const std::string& task_id) const override;
  /// The driver limits none of its containers: their groups are the engine's.
  Status change_memory_limit(const Directory&, const std::string&, const MemoryLimiter&) const override {
    return {};
  }
  Result<std::unique_ptr<ExecProcess>> exec(const Directory& folder, const std::string& task_id,
                                            const ExecRequest& request) const override;
  void end_forgotten_execs(const Directory& folder, const std::string& task_id) const override;

 private:
  /// What a look into the image tells.
  struct Findings {
    User user;            ///< whom the task runs as
    bool compat = true;   ///< check_driver
    std::string entered;  ///< by the engine, which makes it if the image lacks it
  };

  DockerLauncher(DockerOptions options, std::vector<Hierarchy> hierarchies);

  Result<std::string> chosen_image(const Launch& launch) const;
  Result<ImageFacts> image_of(const Engine& engine, const Launch& launch) const;
  Result<Findings> inspect_image(const Engine& engine, const Launch& launch, const image::Image& image,
                                 const std::vector<std::string>& image_volumes) const;
  Result<std::string> body_of(const Directory& folder, const Launch& launch, const image::Image& image,
                              const Findings& found) const;
  std::shared_ptr<SeenOfImage> seen_of(const std::string& image_id) const;
  std::optional<Cgroup> cgroup_of(const ContainerState& container) const;
  std::map<std::string, std::string> labels_of(const std::string& task_id) const;

  const std::string socket_;
  const std::chrono::milliseconds patience_;
  const std::vector<Hierarchy> hierarchies_;
  mutable std::mutex seen_mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<SeenOfImage>> seen_;  ///< by the image's id
};

}  // namespace drover::container::docker
