#include "containerizers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "container/composing.h"
#include "container/docker/docker_launcher.h"
#include "container/hidden_paths.h"
#include "container/layers_in_use.h"
#include "container/oci_launcher.h"

namespace drover {
namespace {

container::LauncherOptions launcher_options(const cli::ServeOptions& options, image::Store& images) {
  container::LauncherOptions launching;
  launching.executable = "/proc/self/exe";
  launching.prepare_image = [&images](const auto& reference, const User& reader, const auto& request) {
    return images.prepare(reference, reader, request);
  };
  launching.image_variants = variant_lookup(images);
  launching.selinux = options.selinux;
  launching.ids = {options.container_ids};
  launching.hidden = {container::place_to_hide(options.socket)};
  return launching;
}

bool uses(const std::vector<container::ContainerizerKind>& configured, container::ContainerizerKind kind) {
  return std::ranges::find(configured, kind) != configured.end();
}

/// An engine that does not answer may come later: each launch asks anew. "" then.
std::string find_engine(const std::string& socket) {
  const auto version =
      container::docker::Engine::find(socket).and_then([](auto engine) { return engine.version(); });
  if (!version) {
    spdlog::warn("{}", to_string(version.error()));
    return "";
  }
  auto words = fmt::format("{} {}", version->name, version->version);
  spdlog::info("{} answers at '{}'", words, socket);
  return words;
}

/// A runtime that was asked for must work; without any, the daemon still finds its tasks again and says so.
Result<std::string> working_runtime(const std::vector<container::RuntimeReport>& reports, bool asked_for) {
  if (!reports.empty() && reports.back().works()) return reports.back().name + " " + reports.back().version;
  const auto error = container::no_runtime(reports);
  if (asked_for) return Failure(error);
  spdlog::warn("{}", to_string(error));
  return std::string("none");
}

}  // namespace

Status check_containerizers(const cli::ServeOptions& options) {
  DROVER_TRY(const auto configured, container::parse_containerizers(options.containerizers));
  if (options.allow_privileged && !uses(configured, container::ContainerizerKind::kDocker))
    return fail(ErrorKind::kInvalid,
                "--allow-privileged is for containers of a Docker Engine, and none is used here",
                "add --containerizers docker,oci", "--allow-privileged");
  return {};
}

Result<Containerizers> make_containerizers(const cli::ServeOptions& options, image::Store& images,
                                           const MemoryLimits& limits) {
  Containerizers made;
  auto launching = launcher_options(options, images);
  launching.unlimit_memory = [&limits](const auto& group, const auto& gpus) { limits.unlimit(group, gpus); };
  DROVER_TRY(auto oci,
             container::OciLauncher::create({options.state, options.runtime, std::move(launching),
                                             [](const std::string& line) { spdlog::warn("{}", line); }}));
  DROVER_TRY(auto configured, container::parse_containerizers(options.containerizers));
  if (uses(configured, container::ContainerizerKind::kOci)) {
    DROVER_TRY(made.runtime, working_runtime(oci->runtimes(), !options.runtime.empty()));
  }
  container::docker::DockerOptions docker_options;
  docker_options.state = options.state;
  docker_options.socket = options.docker_socket;
  docker_options.launching = launcher_options(options, images);
  DROVER_TRY(auto docker, container::docker::DockerLauncher::create(std::move(docker_options)));
  if (uses(configured, container::ContainerizerKind::kDocker))
    if (const auto engine = find_engine(options.docker_socket); !engine.empty())
      made.runtime += (made.runtime.empty() ? "" : ", ") + engine;
  made.launcher = std::make_unique<container::ComposingLauncher>(
      std::move(configured), std::move(oci), std::move(docker), launcher_options(options, images));
  return made;
}

Result<image::Store> open_images(const cli::ServeOptions& options) {
  image::StoreOptions images;
  images.named = options.images;
  images.layers_in_use = [tasks = options.state + "/tasks"] { return container::layers_in_use(tasks); };
  images.plain_registries = {options.insecure_registries.begin(), options.insecure_registries.end()};
  images.certificates = options.registry_certificates;
  auto& limits = images.pulling.unpacking;
  limits.bytes = options.max_image_size;
  limits.entries = options.max_image_files;
  limits.reserved_space = options.keep_free;
  return image::Store::open(options.state + "/images", std::move(images));
}

image::VariantLookup variant_lookup(image::Store& images) {
  return [&images](const auto& reference, const User& reader, const auto& options) {
    return images.variants(reference, reader, options);
  };
}

}  // namespace drover
