#include "container/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "base/fd.h"
#include "base/files.h"
#include "base/pidfd.h"
#include "gpu/kernel.h"

namespace drover::container {
namespace {

constexpr auto kKillPoll = std::chrono::milliseconds(5);
constexpr mode_t kGroupMode = 0755;

std::vector<std::string_view> words_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

bool has_controller(const Hierarchy& hierarchy, std::string_view name) {
  return std::find(hierarchy.controllers.begin(), hierarchy.controllers.end(), name) !=
         hierarchy.controllers.end();
}

/// The words of a version 1 hierarchy's mount options that are no controllers.
bool is_option(std::string_view word) {
  static constexpr std::string_view kOptions[] = {
      "rw", "ro", "xattr", "noprefix", "clone_children", "none", "release_agent"};
  return std::find(std::begin(kOptions), std::end(kOptions), word.substr(0, word.find('='))) !=
         std::end(kOptions);
}

/// The number after `key` in a file of lines "key number"; 0 when there is none.
std::uint64_t counter(const std::string& file, std::string_view key) {
  const auto text = read_file(file);
  if (!text) return 0;
  for (const auto line : words_of(*text, '\n')) {
    const auto words = words_of(line, ' ');
    if (words.size() != 2 || words[0] != key) continue;
    std::uint64_t value = 0;
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), value);
    return value;
  }
  return 0;
}

std::vector<std::string> groups_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_directory(error)) names.push_back(entry.path().filename().string());
  return names;
}

void remove_group(const std::string& folder) {
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return;
  for (const auto& name : groups_in(folder)) remove_group(folder + "/" + name);
  ::rmdir(folder.c_str());
}

void read_processes(const std::string& folder, std::set<pid_t>& into) {
  for (const auto& name : groups_in(folder)) read_processes(folder + "/" + name, into);
  const auto text = read_file(folder + "/cgroup.procs");
  if (!text) return;
  for (const auto line : words_of(*text, '\n')) {
    pid_t pid = 0;
    std::from_chars(line.data(), line.data() + line.size(), pid);
    if (pid > 0) into.insert(pid);
  }
}

bool write_control_file(const std::string& file, std::string_view value) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

/// Makes the group if it is not there; its parent is. Whatever the umask is, everybody may look at it: the
/// root of a container, who is nobody on the machine, does so to find his own.
Status make_group(const std::string& folder) {
  if (::mkdir(folder.c_str(), kGroupMode) != 0 && errno != EEXIST)
    return fail_errno(fmt::format("Failed to make the control group '{}'", folder), errno);
  if (::chmod(folder.c_str(), kGroupMode) != 0)
    return fail_errno(fmt::format("Failed to let everybody look at '{}'", folder), errno);
  return {};
}

}  // namespace

std::vector<Hierarchy> parse_hierarchies(std::string_view mountinfo) {
  std::vector<Hierarchy> hierarchies;
  for (const auto line : words_of(mountinfo, '\n')) {
    const auto separator = line.find(" - ");
    if (separator == std::string_view::npos) continue;
    const auto place = words_of(line.substr(0, separator), ' ');
    const auto kind = words_of(line.substr(separator + 3), ' ');
    if (place.size() < 5 || kind.empty() || (kind[0] != "cgroup" && kind[0] != "cgroup2")) continue;
    Hierarchy hierarchy{std::string(place[4]), {}, kind[0] == "cgroup2"};
    if (!hierarchy.unified && kind.size() > 2)
      for (const auto word : words_of(kind[2], ','))
        if (!is_option(word)) hierarchy.controllers.emplace_back(word);
    hierarchies.push_back(std::move(hierarchy));
  }
  return hierarchies;
}

Result<std::vector<Hierarchy>> find_hierarchies() {
  DROVER_TRY(const auto mountinfo, read_file("/proc/self/mountinfo"));
  return parse_hierarchies(mountinfo);
}

std::string_view cgroup_mode(const std::vector<Hierarchy>& hierarchies) {
  const auto unified = [](const Hierarchy& hierarchy) { return hierarchy.unified; };
  if (hierarchies.empty()) return "none";
  if (std::all_of(hierarchies.begin(), hierarchies.end(), unified)) return "v2";
  return std::any_of(hierarchies.begin(), hierarchies.end(), unified) ? "hybrid" : "v1";
}

bool can_limit_swap(const std::vector<Hierarchy>& hierarchies) {
  // The root group of version 2 has no such file, the group of any process below it does.
  for (const auto& hierarchy : hierarchies) {
    std::error_code error;
    if (has_controller(hierarchy, "memory"))
      return std::filesystem::exists(hierarchy.mount + "/memory.memsw.limit_in_bytes", error);
    if (!hierarchy.unified || cgroup_mode(hierarchies) != "v2") continue;
    for (const auto& entry : std::filesystem::directory_iterator(hierarchy.mount, error))
      if (std::filesystem::exists(entry.path() / "memory.swap.max", error)) return true;
  }
  return false;
}

std::vector<int> usable_cpus(const std::vector<Hierarchy>& hierarchies) {
  for (const auto& hierarchy : hierarchies) {
    if (!has_controller(hierarchy, "cpuset") && !hierarchy.unified) continue;
    // Version 1 names it in the first way, version 2 in the second.
    for (const char* file : {"/cpuset.effective_cpus", "/cpuset.cpus.effective"})
      if (const auto text = read_file(hierarchy.mount + file))
        if (auto cpus = gpu::parse_cpu_list(*text); cpus && !cpus->empty()) return *cpus;
  }
  return {};
}

std::vector<int> cpus_to_pin(const std::vector<int>& wanted, const std::vector<int>& usable) {
  std::vector<int> both;
  std::set_intersection(wanted.begin(), wanted.end(), usable.begin(), usable.end(), std::back_inserter(both));
  return both == usable ? std::vector<int>() : both;
}

bool in_service(const Hierarchy& hierarchy, std::string_view own_groups) {
  const std::string_view name = hierarchy.unified ? "" : "name=systemd";
  if (!hierarchy.unified && !has_controller(hierarchy, name)) return false;
  for (const auto line : words_of(own_groups, '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos || line.substr(first + 1, second - first - 1) != name) continue;
    return line.substr(second + 1) != "/";
  }
  return false;
}

std::optional<std::string> group_of_container(std::string_view groups, std::string_view container_id) {
  if (container_id.empty()) return std::nullopt;
  for (const auto line : words_of(groups, '\n')) {
    const auto second = line.find(':', line.find(':') + 1);
    if (second == std::string_view::npos) continue;
    const auto path = line.substr(second + 1);
    if (path.starts_with('/') && path.find(container_id) != std::string_view::npos) return std::string(path);
  }
  return std::nullopt;
}

std::string own_unified_folder(const std::vector<Hierarchy>& hierarchies, std::string_view own_groups) {
  constexpr std::string_view kUnified = "0::";
  if (cgroup_mode(hierarchies) != "v2") return "";
  for (const auto line : words_of(own_groups, '\n'))
    if (line.starts_with(kUnified))
      return hierarchies.front().mount + std::string(line.substr(kUnified.size()));
  return "";
}

void leave_service(const std::vector<Hierarchy>& hierarchies, const std::string& cgroup) {
  const auto own_groups = read_file("/proc/self/cgroup");
  for (const auto& hierarchy : hierarchies) {
    if (!own_groups || !in_service(hierarchy, *own_groups)) continue;
    const auto folder = hierarchy.mount + cgroup;
    for (auto end = cgroup.find('/', 1);; end = cgroup.find('/', end + 1)) {
      (void)make_group(hierarchy.mount + cgroup.substr(0, end));
      if (end == std::string::npos) break;
    }
    write_control_file(folder + "/cgroup.procs", std::to_string(::getpid()));
  }
}

std::uint64_t most_processes(std::uint64_t kernel_limit) {
  return kernel_limit - kernel_limit / 8;
}

Result<std::uint64_t> kernel_process_limit() {
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (const std::string file : {"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"}) {
    DROVER_TRY(const auto text, read_file(file));
    std::uint64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
      return fail(ErrorKind::kCorrupt, fmt::format("'{}' has no number", file));
    least = std::min(least, number);
  }
  return least;
}

Status limit_processes(const std::vector<Hierarchy>& hierarchies, const std::string& path,
                       std::uint64_t most) {
  const bool unified = cgroup_mode(hierarchies) == "v2";
  for (const auto& hierarchy : hierarchies) {
    if (!has_controller(hierarchy, "pids") && !unified) continue;
    const auto folder = hierarchy.mount + path;
    if (unified) write_control_file(hierarchy.mount + "/cgroup.subtree_control", "+pids");
    DROVER_CHECK_OK(make_group(folder));
    if (!write_control_file(folder + "/pids.max", std::to_string(most)))
      return fail_errno(fmt::format("Failed to limit the processes of '{}'", folder), errno);
    return {};
  }
  return fail(ErrorKind::kUnsupported, "Processes are not counted here: there is no pids controller");
}

Cgroup::Cgroup(std::vector<Hierarchy> hierarchies, std::string path)
    : hierarchies_(std::move(hierarchies)), path_(std::move(path)) {}

std::vector<pid_t> Cgroup::processes() const {
  std::set<pid_t> found;
  for (const auto& hierarchy : hierarchies_) read_processes(folder(hierarchy), found);
  return {found.begin(), found.end()};
}

void Cgroup::signal_all(int signal, pid_t except) const {
  std::vector<UniqueFd> handles;
  const auto first = processes();
  for (const auto pid : first) handles.push_back(open_process(pid));
  // Who is still listed after its descriptor was opened is meant by it, and no later process with its id.
  const auto second = processes();
  for (std::size_t i = 0; i < first.size(); ++i)
    if (handles[i].valid() && first[i] != except &&
        std::binary_search(second.begin(), second.end(), first[i]))
      send_signal(handles[i], signal);
}

Status Cgroup::kill_all(std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto present = processes();
    if (present.empty()) return {};
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorKind::kTimeout,
                  fmt::format("{} processes of '{}' do not end, the first is {}", present.size(), path_,
                              present.front()),
                  "they hang in the kernel: look at /proc/PID/stack");
    signal_all(SIGKILL);
    std::this_thread::sleep_for(kKillPoll);
  }
}

std::uint64_t Cgroup::out_of_memory_kills() const {
  std::uint64_t kills = 0;
  for (const auto& hierarchy : hierarchies_) {
    if (hierarchy.unified) kills += counter(folder(hierarchy) + "/memory.events", "oom_kill");
    if (has_controller(hierarchy, "memory"))
      kills += counter(folder(hierarchy) + "/memory.oom_control", "oom_kill");
  }
  return kills;
}

std::vector<std::string> Cgroup::children() const {
  std::set<std::string> names;
  for (const auto& hierarchy : hierarchies_)
    for (auto& name : groups_in(folder(hierarchy))) names.insert(std::move(name));
  return {names.begin(), names.end()};
}

Status Cgroup::create() const {
  for (const auto& hierarchy : hierarchies_) {
    const auto made = folder(hierarchy);
    const auto parent = made.substr(0, made.rfind('/'));
    std::error_code error;
    if (std::filesystem::exists(made, error) || !std::filesystem::exists(parent, error)) continue;
    if (auto group = make_group(made); !group) {
      if (!std::filesystem::exists(parent, error)) continue;  // it has ended meanwhile
      return group;
    }
    // In version 1 this one is born without any, and would take nobody in.
    if (!has_controller(hierarchy, "cpuset")) continue;
    for (const char* file : {"/cpuset.cpus", "/cpuset.mems"})
      if (const auto text = read_file(parent + file)) write_control_file(made + file, *text);
  }
  return {};
}

Result<std::string> Cgroup::unified_folder() const {
  if (cgroup_mode(hierarchies_) == "v2") return folder(hierarchies_.front());
  return fail(ErrorKind::kUnsupported, "Control groups are not, or not only, of version 2 here",
              "boot with systemd.unified_cgroup_hierarchy=1");
}

void Cgroup::take(pid_t pid) const {
  for (const auto& hierarchy : hierarchies_)
    write_control_file(folder(hierarchy) + "/cgroup.procs", std::to_string(pid));
}

void Cgroup::remove() const {
  for (const auto& hierarchy : hierarchies_) remove_group(folder(hierarchy));
}

}  // namespace drover::container
