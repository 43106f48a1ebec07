#include "share/mps_daemons.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/pidfd.h"
#include "base/process.h"
#include "base/shorten.h"

namespace drover::share {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kMark = "DROVER_MPS";  // for whoever looks for whose they are
constexpr const char* kInside = "/mnt";      // where the daemon has its folder
constexpr const char* kPipeInside = "/mnt/pipe";
constexpr const char* kLogInside = "/mnt/log";
constexpr const char* kLog = "log/daemon.log";
constexpr const char* kLogVariable = "CUDA_MPS_LOG_DIRECTORY";
constexpr auto kStartPatience = 15s;
constexpr auto kTellPatience = 5s;
constexpr auto kEndPatience = 10s;
constexpr auto kPause = 20ms;

bool has_ended(const UniqueFd& process) {
  pollfd poll{process.get(), POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

Status mounted(int result, const std::string& what) {
  return result == 0 ? Status() : fail_errno(what, errno);
}

/// What the calling thread sees from now on, and the programs that it starts.
Status enter_own_mounts(const std::string& folder) {
  const auto what = "Failed to give an MPS daemon its folders";
  DROVER_CHECK_OK(mounted(::unshare(CLONE_FS | CLONE_NEWNS), what));
  DROVER_CHECK_OK(mounted(::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr), what));
  DROVER_CHECK_OK(mounted(::mount(folder.c_str(), kInside, nullptr, MS_BIND, nullptr),
                          fmt::format("{}: nothing can be mounted at {}", what, kInside)));
  return mounted(::mount((folder + "/shm").c_str(), kMpsShm, nullptr, MS_BIND, nullptr),
                 fmt::format("{}: nothing can be mounted at {}", what, kMpsShm));
}

/// Which mounts a process sees; "" when it has ended.
std::string mounts_of(const std::string& proc, std::string_view pid) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("{}/{}/ns/mnt", proc, pid), error).string();
}

/// Of the file system that is mounted there.
std::optional<dev_t> device_at(const std::string& folder) {
  struct stat here{}, around{};
  const auto parent = std::filesystem::path(folder).parent_path();
  if (::stat(folder.c_str(), &here) != 0 || ::stat(parent.c_str(), &around) != 0) return std::nullopt;
  return here.st_dev == around.st_dev ? std::nullopt : std::optional(here.st_dev);
}

/// Does it where the folder is at kInside: in a thread of its own, since mounts are a thread's own as soon as
/// it asks for that, and what it starts has them too.
template <typename Do>
auto inside(const std::string& folder, const Do& act) -> decltype(act()) {
  decltype(act()) done;
  std::thread([&] {
    if (const auto entered = enter_own_mounts(folder); entered)
      done = act();
    else
      done = Failure(entered.error());
  }).join();
  return done;
}

}  // namespace

std::string mps_commands(const MpsLimits& limits) {
  std::string words;
  if (limits.threads) words += fmt::format("set_default_active_thread_percentage {}\n", *limits.threads);
  for (const auto& [gpu, mib] : limits.memory_mib)
    words += fmt::format("set_default_device_pinned_mem_limit {} {}M\n", gpu, mib);
  return words + "get_server_list\n";  // it is asked something in any case
}

std::vector<MpsMount> mps_mounts(const MpsPlaces& places, const std::string& pipe) {
  return {{places.pipe, pipe, false}, {places.shm, kMpsShm, true}};
}

MpsDaemons::MpsDaemons(std::string folder, std::string proc)
    : folder_(std::move(folder)), proc_(std::move(proc)) {}

MpsPlaces MpsDaemons::places(const std::string& owner) const {
  return {folder_of(owner) + "/pipe", folder_of(owner) + "/shm"};
}

std::vector<MpsDaemons::Process> MpsDaemons::processes_of(const std::string& owner) const {
  std::vector<Process> found;
  const auto device = device_at(folder_of(owner));
  if (!device) return found;
  const auto mount = fmt::format(" {}:{} / {} ", major(*device), minor(*device), kInside);
  // Whether whoever sees those mounts is inside.
  std::map<std::string, bool> known{{mounts_of(proc_, "self"), false}};
  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc_, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    pid_t pid = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong != std::errc() || rest != name.data() + name.size()) continue;
    // Opened before it is looked at: a number that is somebody else's by then is not killed.
    Process process{pid, open_process(pid), false};
    if (!process.descriptor.valid()) continue;
    const auto mounts = mounts_of(proc_, name);
    auto at = known.find(mounts);
    if (at == known.end()) {
      const auto list = read_file(entry->path().string() + "/mountinfo");
      if (has_ended(process.descriptor)) continue;  // the list may be another one's
      at = known.emplace(mounts, list && list->find(mount) != std::string::npos).first;
    }
    if (!at->second || has_ended(process.descriptor)) continue;
    process.is_control = ::getsid(pid) == pid;
    found.push_back(std::move(process));
  }
  return found;
}

bool MpsDaemons::runs(const std::string& owner) {
  if (const auto known = running_.find(owner); known != running_.end()) {
    if (!has_ended(known->second.process)) return true;
    ::waitpid(known->second.pid, nullptr, WNOHANG);
    running_.erase(known);
    return false;
  }
  for (auto& process : processes_of(owner))
    if (process.is_control) {
      running_[owner] = {process.pid, std::move(process.descriptor)};
      return true;
    }
  return false;
}

/// One that is there stays the same file system: containers have it. What is left of a daemon's sockets goes.
Status MpsDaemons::make_folder(const std::string& owner) const {
  const auto path = folder_of(owner);
  DROVER_CHECK_OK(Directory::create(folder_, 0700));
  DROVER_CHECK_OK(Directory::create(path, 0700));
  if (!device_at(path))
    DROVER_CHECK_OK(mounted(::mount("drover-mps", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                    "size=64m,nr_inodes=8k,mode=0755"),
                            fmt::format("Failed to mount a file system in memory at '{}'", path)));
  DROVER_TRY(const auto folder, Directory::open(path));
  for (const auto& [name, mode] : {std::pair("pipe", 0755U), {"log", 0755U}, {"shm", 01777U}}) {
    DROVER_TRY(const auto made, folder.make_subdirectory(name));
    if (::fchmod(made.fd(), mode) != 0) return fail_errno(fmt::format("Failed to open up '{}'", name), errno);
  }
  DROVER_TRY(const auto pipe, folder.subdirectory("pipe"));
  DROVER_TRY(const auto names, pipe.list());
  for (const auto& name : names) DROVER_CHECK_OK(pipe.remove_tree(name));
  return {};
}

Status MpsDaemons::remove_folder(const std::string& owner) const {
  const auto path = folder_of(owner);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  while (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
  }
  DROVER_TRY(const auto all, Directory::open(folder_));
  return all.remove_tree(owner);
}

Status MpsDaemons::launch(const std::string& owner, const MpsLimits& limits, const Programs& programs) {
  const auto folder = folder_of(owner);
  Child child;
  child.program = programs.mps_control;
  child.arguments = {programs.mps_control, "-f"};
  child.environment = programs.environment;
  child.environment[kMark] = folder;
  child.environment[kMpsPipeVariable] = kPipeInside;
  child.environment[kLogVariable] = kLogInside;
  child.environment["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(limits.gpus, ","));
  UniqueFd log(::open((folder + "/" + kLog).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return fail_errno("Failed to make the log of an MPS daemon", errno);
  DROVER_TRY(auto spawned, inside(folder, [&] {
               ChildDescriptors descriptors;
               descriptors.open("/dev/null", STDIN_FILENO);
               descriptors.give(log.get(), STDOUT_FILENO);
               descriptors.give(log.get(), STDERR_FILENO);
               descriptors.close_from(STDERR_FILENO + 1);
               return spawn(child, descriptors);
             }));
  running_[owner] = std::move(spawned);
  return {};
}

/// False when it does not answer, or says that something is wrong.
Result<bool> MpsDaemons::tell(const std::string& owner, const Programs& programs,
                              const std::string& words) const {
  Command command;
  command.arguments = {programs.mps_control};
  command.environment = programs.environment;
  command.environment[kMark] = folder_of(owner);
  // As the daemon sees it: the path of a socket has 107 bytes at most, and ours may be longer.
  command.environment[kMpsPipeVariable] = kPipeInside;
  command.input = words;
  command.timeout = kTellPatience;
  DROVER_TRY(const auto completed, inside(folder_of(owner), [&] { return run_command(command); }));
  return completed.exit_status == 0;
}

std::string MpsDaemons::last_words(const std::string& owner) const {
  const auto log = read_file(folder_of(owner) + "/" + kLog).value_or("");
  constexpr std::size_t kShown = 300;
  auto words = log.substr(log.size() - std::min(log.size(), kShown));
  std::ranges::replace(words, '\n', ' ');
  return words.empty() ? "it said nothing" : shortened(words);
}

Status MpsDaemons::set_limits(const std::string& owner, const MpsLimits& limits, const Programs& programs) {
  const auto words = mps_commands(limits);
  for (const auto deadline = Clock::now() + kStartPatience; Clock::now() < deadline;) {
    if (!runs(owner))
      return fail(ErrorKind::kUnavailable, "the MPS control daemon ended at once: " + last_words(owner));
    if (const auto answered = tell(owner, programs, words); answered && *answered) return {};
    std::this_thread::sleep_for(kPause);
  }
  return fail(ErrorKind::kTimeout, "the MPS control daemon does not answer: " + last_words(owner));
}

Status MpsDaemons::start(const std::string& owner, const MpsLimits& limits, const Programs& programs) {
  DROVER_CHECK_OK(end_processes(owner, &programs));
  const auto started = [&]() -> Status {
    DROVER_CHECK_OK(make_folder(owner));
    DROVER_CHECK_OK(launch(owner, limits, programs));
    return set_limits(owner, limits, programs);
  }();
  if (!started) DROVER_CHECK_OK(end_processes(owner, nullptr));
  return started;
}

Status MpsDaemons::end_processes(const std::string& owner, const Programs* programs) {
  if (programs != nullptr && runs(owner)) (void)tell(owner, *programs, "quit -t 3\n");
  for (const auto deadline = Clock::now() + kEndPatience;;) {
    runs(owner);  // one that has ended is no child of ours any more
    const auto left = processes_of(owner);
    if (left.empty()) break;
    if (Clock::now() > deadline)
      return fail(
          ErrorKind::kTimeout,
          fmt::format("{} processes of an MPS daemon do not end, though they are killed", left.size()),
          "the driver holds them: what the kernel says of it (dmesg) may tell why");
    for (const auto& process : left) send_signal(process.descriptor, SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
  runs(owner);
  return {};
}

Status MpsDaemons::end(const std::string& owner, const Programs* programs) {
  DROVER_CHECK_OK(end_processes(owner, programs));
  return remove_folder(owner);
}

Result<std::vector<std::string>> MpsDaemons::owners() const {
  std::error_code error;
  if (!std::filesystem::exists(folder_, error)) return std::vector<std::string>();
  DROVER_TRY(const auto folder, Directory::open(folder_));
  return folder.list();
}

std::set<pid_t> MpsDaemons::processes() const {
  std::set<pid_t> all;
  for (const auto& owner : owners().value_or(std::vector<std::string>()))
    for (const auto& process : processes_of(owner)) all.insert(process.pid);
  return all;
}

}  // namespace drover::share
