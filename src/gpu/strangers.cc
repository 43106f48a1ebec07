#include "gpu/strangers.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/files.h"

namespace drover::gpu {
namespace {

constexpr std::size_t kMostText = 1 << 20;     // of a file of a process
constexpr std::size_t kMostMaps = 64UL << 20;  // of the list of its mappings
constexpr std::size_t kMostName = 15;          // the kernel keeps no more of a program's name
constexpr uid_t kFirstPerson = 1000;           // accounts below are the system's

/// A folder of /proc. What lies in it is named from there: to follow a whole path through /proc for each of a
/// process's many descriptors takes several times as long.
class Folder {
 public:
  Folder(int parent, const std::string& name)
      : entries_(open(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), &::closedir) {}

  /// -1 when it is gone, or not for us to see.
  int fd() const { return entries_ ? ::dirfd(entries_.get()) : -1; }
  /// The next that is named by a number.
  std::optional<std::string> next() {
    while (const auto* entry = entries_ ? ::readdir(entries_.get()) : nullptr)
      if (const auto* name = static_cast<const char*>(entry->d_name); *name >= '0' && *name <= '9')
        return name;
    return std::nullopt;
  }

 private:
  static DIR* open(int fd) { return fd < 0 ? nullptr : ::fdopendir(fd); }

  std::unique_ptr<DIR, int (*)(DIR*)> entries_;
};

template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(number)
                                                                         : std::nullopt;
}

/// What a file of a process says; "" when it is gone.
std::string text_of(int process, const std::string& name, std::size_t most = kMostText) {
  const UniqueFd file(::openat(process, name.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() ? read_all(file.get(), name, most).value_or("") : "";
}

/// The device behind a link of /proc; 0 when it is none, nullopt when we may not know. A file server that
/// does not answer holds up nobody.
std::optional<dev_t> device_behind(int folder, const std::string& link) {
  struct statx info{};
  if (::statx(folder, link.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &info) != 0)
    return errno == EACCES || errno == EPERM ? std::nullopt : std::optional<dev_t>(0);
  return S_ISCHR(info.stx_mode) ? ::makedev(info.stx_rdev_major, info.stx_rdev_minor) : 0;
}

/// The rest of the line that begins with this word in a file of a process; "" when there is none.
std::string_view line_after(std::string_view text, std::string_view word) {
  auto begin = text.starts_with(word) ? 0 : text.find(fmt::format("\n{}", word));
  if (begin == std::string_view::npos) return {};
  if (text[begin] == '\n') ++begin;
  text.remove_prefix(begin + word.size());
  text = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

/// Everybody may have a descriptor of everything's name alone (O_PATH): that opens no device.
bool is_only_a_name(int thread, const std::string& descriptor) {
  const auto text = text_of(thread, "fdinfo/" + descriptor);
  const auto flags = parse_number<unsigned>(line_after(text, "flags:"), 8);
  return flags && (*flags & O_PATH) != 0;
}

struct Threads {
  bool of_kernel = false;  ///< half of a small machine's processes, and they open nothing
  bool is_one = false;
};

/// From "stat" (proc(5)): the fields after the name, which may hold anything, begin with the third.
Threads threads_of(int process) {
  constexpr unsigned kKernelThread = 0x00200000;  // PF_KTHREAD
  constexpr int kFirst = 3, kFlags = 9, kThreads = 20;
  const auto text = text_of(process, "stat");
  std::string_view rest = text;
  rest.remove_prefix(std::min(rest.rfind(')'), rest.size()));
  Threads threads;
  for (int field = kFirst; field <= kThreads; ++field) {
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
    const auto number = parse_number<unsigned>(rest.substr(0, rest.find(' ')));
    if (field == kFlags) threads.of_kernel = number && (*number & kKernelThread) != 0;
    if (field == kThreads) threads.is_one = number == 1;
  }
  return threads;
}

/// Of one look at all processes.
class OpenerSearch {
 public:
  OpenerSearch(const std::set<dev_t>& devices, const TaskOf& task_of)
      : devices_(devices), task_of_(task_of) {}

  void inspect(int process, std::uint32_t pid) {
    const auto threads = threads_of(process);
    if (threads.of_kernel) return;
    if (threads.is_one)
      inspect_files(process, pid);
    else
      inspect_threads(process, pid);
    if (!task_of_(text_of(process, "cgroup")).empty()) inspect_mappings(process, pid);
  }

  std::map<dev_t, std::set<std::uint32_t>> found;

 private:
  static bool shares_files(std::uint32_t pid, std::uint32_t thread) {
    return ::syscall(SYS_kcmp, pid, thread, KCMP_FILES, 0, 0) == 0;
  }

  void inspect_threads(int process, std::uint32_t pid) {
    Folder threads(process, "task");
    while (const auto name = threads.next()) {
      const auto thread = parse_number<std::uint32_t>(*name);
      // Threads mostly share their descriptors; but each can have its own, and the first can have ended.
      if (thread && (*thread == pid || !shares_files(pid, *thread))) {
        const UniqueFd folder(::openat(threads.fd(), name->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        inspect_files(folder.get(), pid);
      }
    }
  }

  void inspect_files(int thread, std::uint32_t pid) {
    Folder files(thread, "fd");
    while (const auto descriptor = files.next()) {
      const auto device = device_behind(files.fd(), *descriptor);
      if (!device) return;  // a process that keeps one from us keeps all
      if (devices_.contains(*device) && !is_only_a_name(thread, *descriptor)) found[*device].insert(pid);
    }
  }

  void inspect_mappings(int process, std::uint32_t pid) {
    const auto maps = text_of(process, "maps", kMostMaps);
    for (std::string_view rest = maps; !rest.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (const auto device = mapped(process, line); devices_.contains(device)) found[device].insert(pid);
    }
  }

  /// "7f12-7f34 rw-s 00000000 00:05 123 /dev/nvidia0": only the file's own number is there, so each file is
  /// asked once.
  dev_t mapped(int process, std::string_view line) {
    const auto range = line.substr(0, line.find(' '));
    for (int fields = 0; fields < 3; ++fields) line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    const auto file = line.substr(0, line.find(' ', line.find(' ') + 1));
    if (file.empty() || file.ends_with(" 0")) return 0;
    const auto [known, is_new] = files_.try_emplace(std::string(file), 0);
    if (!is_new) return known->second;
    const auto begin = parse_number<std::uint64_t>(range.substr(0, range.find('-')), 16).value_or(0);
    const auto end = parse_number<std::uint64_t>(range.substr(range.find('-') + 1), 16).value_or(0);
    return known->second = device_behind(process, fmt::format("map_files/{:x}-{:x}", begin, end)).value_or(0);
  }

  const std::set<dev_t>& devices_;
  const TaskOf& task_of_;
  std::map<std::string, dev_t> files_;  ///< the device of each file that is mapped, by "00:05 123"
};

struct Process {
  std::string name;
  uid_t user = 0;
  std::string task;
};

/// None for one that is gone.
std::optional<Process> read_process(const std::string& folder, const TaskOf& task_of) {
  const auto cgroups = read_file(folder + "/cgroup", kMostText);
  const auto status = read_file(folder + "/status", kMostText);
  auto name = read_file(folder + "/comm", kMostText);
  if (!cgroups || !status || !name) return std::nullopt;
  while (name->ends_with('\n')) name->pop_back();
  for (auto& character : *name)
    if (character < ' ' || character > '~') character = '?';
  // Not whom the folder belongs to: that is root for every process that cannot be traced.
  const auto user = line_after(*status, "Uid:");
  return Process{std::move(*name),
                 parse_number<uid_t>(user.substr(0, user.find('\t'))).value_or(kFirstPerson),
                 task_of(*cgroups)};
}

bool is_excused(const Process& process, const StrangerPolicy& policy) {
  const auto is_named = [&](const std::string& program) {
    return process.name == program.substr(0, kMostName);
  };
  return process.task.empty() &&
         (std::ranges::any_of(policy.excused, is_named) ||
          (process.user < kFirstPerson && std::ranges::any_of(system_programs(), is_named)));
}

}  // namespace

const std::set<std::string>& system_programs() {
  static const std::set<std::string> programs{"Xorg",
                                              "Xwayland",
                                              "dcgm-exporter",
                                              "drover",
                                              "dcgmi",
                                              "gnome-shell",
                                              "nv-fabricmanager",
                                              "nv-hostengine",
                                              "nvidia-device-plugin",
                                              "nvidia-imex",
                                              "nvidia-modprobe",
                                              "nvidia-persistenced",
                                              "nvidia-powerd",
                                              "nvidia-smi",
                                              "nvidia-settings",
                                              "nvidia_gpu_exporter",
                                              "nvtop",
                                              "telegraf"};
  return programs;
}

std::map<dev_t, std::set<std::uint32_t>> find_openers(const std::string& proc, const std::set<dev_t>& devices,
                                                      const TaskOf& task_of) {
  OpenerSearch search(devices, task_of);
  if (devices.empty()) return {};
  Folder processes(AT_FDCWD, proc);
  while (const auto name = processes.next()) {
    const UniqueFd process(::openat(processes.fd(), name->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto pid = parse_number<std::uint32_t>(*name);
    if (pid && process.valid()) search.inspect(process.get(), *pid);
  }
  return std::move(search.found);
}

std::map<std::string, std::string> find_strangers(const std::vector<GuardedGpu>& gpus,
                                                  const StrangerPolicy& policy, const TaskOf& task_of,
                                                  const std::string& proc) {
  std::set<dev_t> devices;
  for (const auto& gpu : gpus)
    if (gpu.device != 0) devices.insert(gpu.device);
  const auto openers = find_openers(proc, devices, task_of);
  std::map<std::string, std::string> strangers;
  for (const auto& gpu : gpus) {
    auto pids = gpu.computing;
    if (const auto found = openers.find(gpu.device); found != openers.end())
      pids.insert(found->second.begin(), found->second.end());
    for (const auto pid : pids) {
      const auto number = static_cast<pid_t>(pid);
      if (number == ::getpid() || policy.servers.contains(number)) continue;
      const auto process = read_process(fmt::format("{}/{}", proc, pid), task_of);
      if (!process || gpu.tasks.contains(process->task) || is_excused(*process, policy)) continue;
      strangers[gpu.uuid] =
          fmt::format("process {} ({}) has it open, and is {}", pid, process->name,
                      process->task.empty() ? "no task's" : "of a task that does not have it");
      break;
    }
  }
  return strangers;
}

}  // namespace drover::gpu
