#include "doctor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/files.h"
#include "base/process.h"
#include "base/units.h"
#include "cdi/registry.h"
#include "container/cgroup.h"
#include "container/docker/engine.h"
#include "container/oci_launcher.h"
#include "container/runtime_flaws.h"
#include "container/security_modules.h"
#include "driver/cdi.h"
#include "driver/files.h"
#include "gpu/device_files.h"
#include "gpu/discovery.h"
#include "gpu/simulation.h"
#include "hardware.h"
#include "image/tar.h"
#include "kube/kubelet/container_runtime.h"
#include "memory_limits.h"
#include "share/kernel_limit.h"

namespace drover {
namespace {

using cli::Check;
using State = Check::State;

Check from_error(std::string name, State state, const Error& error) {
  return {std::move(name), state, error.message, error.hint};
}

Check check_root() {
  if (::geteuid() == 0) return {"root", State::kFound, "this program runs as root", ""};
  return {"root", State::kWarning, fmt::format("this program runs as uid {}", ::geteuid()),
          "'drover serve' needs root; the other commands do not"};
}

Check check_kernel() {
  utsname system{};
  ::uname(&system);
  const auto found = fmt::format("Linux {} on {}", system.release, system.machine);
  int major = 0, minor = 0;
  if (std::sscanf(system.release, "%d.%d", &major, &minor) == 2 && (major > 5 || (major == 5 && minor >= 12)))
    return {"kernel", State::kFound, found, ""};
  return {"kernel", State::kMissing, found, "use Linux 5.12 or newer (openat2, mount_setattr)"};
}

Check check_cgroups() {
  const auto hierarchies = container::find_hierarchies();
  if (!hierarchies) return from_error("cgroups", State::kMissing, hierarchies.error());
  const auto mode = container::cgroup_mode(*hierarchies);
  if (mode == "none")
    return {"cgroups", State::kMissing, "none are mounted", "mount cgroup2 at /sys/fs/cgroup"};
  return {"cgroups", State::kFound, std::string(mode), ""};
}

Check check_overlay() {
  const auto known = read_file("/proc/filesystems");
  if (known && known->find("\toverlay\n") != std::string::npos)
    return {"overlayfs", State::kFound, "in the kernel", ""};
  return {"overlayfs", State::kWarning, "the kernel has not loaded it",
          "load it for image tasks: modprobe overlay"};
}

/// Neither is needed: the kernel's filter and namespaces come first.
std::vector<Check> check_security_modules() {
  using AppArmor = container::SecurityModules::AppArmor;
  const auto modules = container::find_security_modules();
  std::vector<Check> checks;
  if (modules.apparmor == AppArmor::kReady)
    checks.push_back(
        {"AppArmor", State::kFound, fmt::format("profile '{}'", container::kAppArmorProfile), ""});
  if (modules.apparmor == AppArmor::kProfileMissing)
    checks.push_back(
        {"AppArmor", State::kWarning,
         fmt::format("containers run without a profile: '{}' is not loaded", container::kAppArmorProfile),
         fmt::format("apparmor_parser --replace /etc/apparmor.d/{}", container::kAppArmorProfile)});
  if (modules.selinux_enforcing)
    checks.push_back(
        {"SELinux", State::kFound, "it enforces; 'drover serve --selinux' labels containers", ""});
  if (checks.empty())
    checks.push_back({"security modules", State::kFound, "neither AppArmor nor SELinux is in force", ""});
  return checks;
}

Check check_way_out() {
  const auto program = find_program("slirp4netns");
  if (program) return {"container networks", State::kFound, *program, ""};
  return {"container networks", State::kWarning,
          "without slirp4netns a task in bridge mode can be reached, but reaches nobody outside",
          "install the package slirp4netns"};
}

/// What the machine's distribution says of its changes to a package; "" when the program, by its path or the
/// end of that, is not of that package.
std::string changelog_of(const std::string& package, const std::string& program) {
  constexpr std::uint64_t kLongest = 16ULL << 20;
  const auto files = read_file(fmt::format("/var/lib/dpkg/info/{}.list", package));
  if (!files || files->find(program + "\n") == std::string::npos) return "";
  const auto path = fmt::format("/usr/share/doc/{}/changelog.Debian.gz", package);
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return "";
  image::FileStream stream(std::move(file), path, static_cast<std::uint64_t>(info.st_size));
  image::DecompressedStream plain(stream);
  return image::read_whole(plain, "the changelog", kLongest).value_or("");
}

/// A line for each thing that a version is known for: as a remark where Drover does not meet it.
void add_flaws(std::vector<Check>& checks, const std::string& program, const std::string& version,
               const std::string& changelog) {
  for (const auto& flaw : container::known_flaws(program, version, changelog))
    checks.push_back({fmt::format("{} {}", program, flaw.id), flaw.avoided ? State::kFound : State::kWarning,
                      fmt::format("version {} is known for it, unless your distribution has mended it: {}",
                                  version, flaw.what),
                      flaw.avoided ? "" : fmt::format("update {} to {} or newer", program, flaw.mended_in)});
}

Check check_ids(const Status& works) {
  constexpr const char* kName = "root in containers";
  if (works) return {kName, State::kFound, "it is an ordinary user of the machine", ""};
  return {kName, State::kWarning, fmt::format("it is root of the machine: {}", works.error().message),
          works.error().hint.empty()
              ? "it takes Linux 5.19, user namespaces, and a state folder on ext4, xfs or btrfs"
              : works.error().hint};
}

std::vector<Check> check_runtimes() {
  if (::geteuid() != 0)
    return {{"OCI runtime", State::kWarning, "it can be tried only by root", "run 'drover doctor' as root"}};
  std::string pattern = std::filesystem::temp_directory_path() / "drover-doctor-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    return {from_error("OCI runtime", State::kMissing,
                       errno_error("Failed to make a folder to try it in", errno))};
  container::OciOptions options;
  options.state = pattern;
  options.launching.executable = "/proc/self/exe";
  std::error_code ignored;
  std::filesystem::permissions(pattern, std::filesystem::perms(0711), ignored);  // as the state folder's
  const auto tried = container::try_oci(options);
  std::filesystem::remove_all(pattern, ignored);
  if (!tried) return {from_error("OCI runtime", State::kMissing, tried.error())};
  std::vector<Check> checks;
  const auto& reports = tried->runtimes;
  const bool any_works = !reports.empty() && reports.back().works();
  for (const auto& report : reports) {
    const auto name = fmt::format("OCI runtime {}", report.name);
    if (report.works())
      checks.push_back({name, State::kFound, fmt::format("{}, and it ran a container", report.version), ""});
    else
      checks.push_back(from_error(name, any_works ? State::kWarning : State::kMissing, *report.refused));
    if (report.works())
      add_flaws(checks, report.name, report.version, changelog_of(report.name, report.path));
  }
  if (any_works) checks.push_back(check_ids(tried->ids));
  return checks;
}

/// Only where there is a kubelet.
std::vector<Check> check_container_runtime() {
  const cli::KubeNodeOptions defaults;
  if (!std::filesystem::exists(defaults.kubelet)) return {};
  constexpr const char* kName = "Kubernetes' container runtime";
  const auto runtime = kube::ask_runtime(defaults.runtime_endpoint, std::chrono::seconds(5));
  if (!runtime) return {from_error(kName, State::kWarning, runtime.error())};
  const auto found = fmt::format("{} {}", runtime->name, runtime->version);
  if (runtime->cdi == kube::CdiSupport::kYes) return {{kName, State::kFound, found + " does CDI", ""}};
  return {
      {kName, State::kWarning,
       found +
           " does not do CDI, or does not tell: pods get device nodes instead, and claims cannot be served",
       runtime->advice}};
}

/// Only worth a remark: an OCI runtime does without.
std::vector<Check> check_docker() {
  const auto socket = cli::ServeOptions().docker_socket;
  const auto engine = container::docker::Engine::find(socket);
  const auto version = engine ? engine->version() : Failure(engine.error());
  if (!version)
    return {{"Docker Engine", State::kWarning, version.error().message,
             "only 'drover serve --containerizers docker' needs one"}};
  const auto found =
      fmt::format("{} {}, API {}, at '{}'", version->name, version->version, engine->api_version(), socket);
  const auto lacking = engine->shortcomings();
  std::vector<Check> checks;
  if (!lacking || lacking->empty())
    checks.push_back({"Docker Engine", State::kFound, found, ""});
  else
    checks.push_back({"Docker Engine", State::kWarning,
                      fmt::format("{}: {}", found, fmt::join(*lacking, ", ")),
                      "mount the cgroup controllers that it lacks, and start it again"});
  if (version->name == "Docker Engine")
    add_flaws(checks, "docker", version->version, changelog_of("docker.io", "/dockerd"));
  for (const std::string runtime : {"runc", "crun"})
    if (const auto part = version->components.find(runtime); part != version->components.end())
      add_flaws(checks, runtime, part->second, changelog_of(runtime, "/" + runtime));
  return checks;
}

Check check_kernel_driver() {
  const auto version = read_file("/proc/driver/nvidia/version");
  if (version) return {"NVIDIA kernel driver", State::kFound, version->substr(0, version->find('\n')), ""};
  const auto cards = gpu::Kernel().nvidia_gpus().size();
  if (cards == 0)
    return {"NVIDIA kernel driver", State::kWarning, "no NVIDIA GPU is in this machine",
            "try a simulated one: drover serve --simulate dgx-a100"};
  return {"NVIDIA kernel driver", State::kMissing,
          fmt::format("not loaded, though the machine has {} NVIDIA GPUs", cards),
          "install the driver and load it: modprobe nvidia"};
}

/// Only worth a remark: shares are counted without.
Check check_memory_limits(const gpu::Nvml& nvml, const std::vector<gpu::Device>& gpus) {
  constexpr const char* kName = "the driver's memory limits";
  const auto group = own_unified_group();
  for (const auto& gpu : gpus)
    if (const auto can = share::can_limit_memory(nvml, gpu.uuid, group); !can)
      return from_error(kName, State::kWarning, can.error());
  return {kName, State::kFound, "control groups can be held to their share of a GPU", ""};
}

void check_gpus(std::vector<Check>& checks) {
  // Without an NVIDIA card everything about GPUs is only worth a remark.
  const auto missing = gpu::Kernel().nvidia_gpus().empty() ? State::kWarning : State::kMissing;
  const auto nvml = gpu::Nvml::load();
  if (!nvml) {
    checks.push_back(from_error("NVML", missing, nvml.error()));
    return;
  }
  checks.push_back({"NVML", State::kFound, fmt::format("driver {}", nvml->driver_version()), ""});
  const auto inventory = gpu::discover(nvml, {});
  for (const auto& device : inventory.devices)
    checks.push_back(
        {fmt::format("GPU {}", device.index), device.unhealthy.empty() ? State::kFound : State::kMissing,
         device.unhealthy.empty() ? fmt::format("{} {}", device.model, device.uuid) : device.unhealthy,
         device.unhealthy.empty() ? "" : "look at the kernel's log: dmesg | grep -i nvrm"});
  if (!inventory.devices.empty()) checks.push_back(check_memory_limits(*nvml, inventory.devices));
  const auto nodes = gpu::control_device_nodes("/dev");
  if (nodes)
    checks.push_back(
        {"device nodes", State::kFound, fmt::format("{} control devices in /dev", nodes->size()), ""});
  else
    checks.push_back(from_error("device nodes", missing, nodes.error()));
  driver::FindOptions find;
  find.version = nvml->driver_version();
  const auto files = driver::find(find);
  if (files)
    checks.push_back({"driver files", State::kFound,
                      fmt::format("{} of version {}", files->files.size(), files->version), ""});
  else
    checks.push_back(from_error("driver files", missing, files.error()));
}

/// What others' programs wrote, or this one long ago, may name files of a driver that is gone.
Check check_cdi() {
  const auto registry = cdi::Registry::read({std::begin(cdi::kFolders), std::end(cdi::kFolders)});
  std::string file;
  for (const auto& [name, entry] : registry.devices()) {
    if (name.kind != driver::kCdiKind) continue;
    file = entry.file;
    auto edits = registry.edits_of({name});
    if (!edits) return from_error("CDI specification", State::kWarning, edits.error());
    for (const auto& mount : edits->mounts)
      if (::access(mount.host_path.c_str(), F_OK) != 0)
        return {"CDI specification", State::kWarning,
                fmt::format("'{}' is out of date: there is no '{}' any more", file, mount.host_path),
                fmt::format("drover cdi generate --output {}", file)};
    if (const auto complete = cdi::complete_device_nodes(*edits); !complete)
      return {"CDI specification", State::kWarning,
              fmt::format("'{}' is out of date: {}", file, complete.error().message),
              fmt::format("drover cdi generate --output {}", file)};
  }
  if (!file.empty()) return {"CDI specification", State::kFound, file, ""};
  return {"CDI specification", State::kFound,
          "none is installed, and Drover needs none: it is for other container engines", ""};
}

Check check_simulator() {
  const auto places = gpu::simulator_places();
  if (!places) return from_error("simulator", State::kWarning, places.error());
  for (const auto& library : places->libraries)
    if (::access(library.c_str(), R_OK) == 0) return {"simulator", State::kFound, library, ""};
  return {"simulator", State::kWarning, "its library is not beside the program",
          "install Drover's simulator files"};
}

Check check_disk() {
  std::filesystem::path folder = cli::ServeOptions().state;
  while (!std::filesystem::exists(folder)) folder = folder.parent_path();
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0)
    return from_error("disk", State::kMissing,
                      errno_error(fmt::format("Failed to look at '{}'", folder.string()), errno));
  const auto free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  constexpr std::uint64_t kEnough = 1ULL << 30;
  const auto found = fmt::format("{} free for '{}', the state folder unless --state names another",
                                 format_bytes(free), cli::ServeOptions().state);
  if (free >= kEnough) return {"disk", State::kFound, found, ""};
  return {"disk", State::kWarning, found, "free some space, or choose another folder with --state"};
}

}  // namespace

std::vector<Check> examine_machine() {
  std::vector<Check> checks = {check_kernel(), check_root(), check_cgroups(), check_overlay()};
  for (auto& check : check_runtimes()) checks.push_back(std::move(check));
  for (auto& check : check_docker())
    if (std::ranges::find(checks, check.name, &Check::name) == checks.end())
      checks.push_back(std::move(check));
  for (auto& check : check_container_runtime()) checks.push_back(std::move(check));
  for (auto& check : check_security_modules()) checks.push_back(std::move(check));
  checks.push_back(check_way_out());
  checks.push_back(check_kernel_driver());
  check_gpus(checks);
  checks.push_back(check_cdi());
  checks.push_back(check_simulator());
  checks.push_back(check_disk());
  return checks;
}

}  // namespace drover
