#include "container/task_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/pidfd.h"

namespace drover::container {
namespace {

constexpr std::size_t kMaxIdLength = 128;
constexpr auto kSignatureWait = std::chrono::seconds(2);
constexpr auto kSignaturePoll = std::chrono::milliseconds(5);

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

Result<UniqueFd> open_lock(const Directory& task) {
  return task.open_file(kLockFile, O_RDWR | O_CREAT, 0600);
}

/// 0 while nobody has signed.
Result<pid_t> signature(const Directory& task) {
  DROVER_TRY(const auto text, task.read(kLockFile));
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

}  // namespace

std::string started_file(int attempt) {
  return attempt == 0 ? "started" : fmt::format("started.{}", attempt);
}

Status check_task_id(const std::string& id) {
  const bool good = !id.empty() && id.size() <= kMaxIdLength && id.front() != '.' && id.front() != '-' &&
                    std::all_of(id.begin(), id.end(), is_id_character);
  if (good) return {};
  return fail(ErrorKind::kInvalid, fmt::format("'{}' cannot be the id of a task", id));
}

Status replace_file(const Directory& folder, const std::string& name, std::string_view content, mode_t mode) {
  const auto temporary = "." + name + ".new";
  const auto shown = fmt::format("{}/{}", folder.path(), name);
  DROVER_TRY(const auto file, folder.open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode));
  DROVER_CHECK_OK(write_all(file.get(), content, shown));
  if (::fchmod(file.get(), mode) != 0) return fail_errno(fmt::format("Failed to write '{}'", shown), errno);
  if (::renameat(folder.fd(), temporary.c_str(), folder.fd(), name.c_str()) != 0)
    return fail_errno(fmt::format("Failed to write '{}'", shown), errno);
  return {};
}

void TaskLock::release() {
  if (fd_.valid()) ::flock(fd_.get(), LOCK_UN);
  fd_.reset();
}

Status TaskLock::sign() const {
  const auto text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd_.get(), 0) != 0 || ::pwrite(fd_.get(), text.data(), text.size(), 0) < 0)
    return fail_errno("Failed to sign the shim's lock", errno);
  return {};
}

Result<TaskLock> try_lock(const Directory& task) {
  DROVER_TRY(auto file, open_lock(task));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return TaskLock(std::move(file));
  if (errno == EWOULDBLOCK) return TaskLock();
  return fail_errno(fmt::format("Failed to lock '{}/{}'", task.path(), kLockFile), errno);
}

Result<UniqueFd> lock_runtime(const Directory& task) {
  DROVER_TRY(auto file, task.open_file(kRuntimeLock, O_RDONLY | O_CREAT, 0600));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  return fail_errno(fmt::format("Failed to lock '{}/{}'", task.path(), kRuntimeLock), errno);
}

Result<bool> runtime_lives(const Directory& task) {
  if (!task.exists(kRuntimeLock)) return false;
  DROVER_TRY(const auto file, task.open_file(kRuntimeLock, O_RDONLY));
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return true;
  ::flock(file.get(), LOCK_UN);
  return false;
}

Result<UniqueFd> lock_joining(const Directory& task) {
  const auto refuse = [&] {
    return fail(ErrorKind::kConflict, fmt::format("The task in '{}' has ended", task.path()));
  };
  DROVER_TRY(auto file, task.open_file(kJoinLock, O_RDONLY | O_CREAT, 0600));
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return refuse();
  struct stat mine{}, there{};
  const bool same = ::fstat(file.get(), &mine) == 0 &&
                    ::fstatat(task.fd(), kJoinLock, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                    mine.st_ino == there.st_ino;
  if (same && task.exists(kBundle)) return file;
  if (same) (void)task.remove_tree(kJoinLock);
  return refuse();
}

Result<UniqueFd> lock_out_joining(const Directory& task) {
  DROVER_TRY(auto file, task.open_file(kJoinLock, O_RDONLY | O_CREAT, 0600));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return UniqueFd();
  return fail_errno(fmt::format("Failed to lock '{}/{}'", task.path(), kJoinLock), errno);
}

Result<UniqueFd> lock_holder(const Directory& task) {
  const auto deadline = std::chrono::steady_clock::now() + kSignatureWait;
  while (true) {
    DROVER_TRY(const auto before, try_lock(task));
    if (before.held()) return UniqueFd();
    DROVER_TRY(const auto pid, signature(task));
    auto holder = pid > 0 ? open_process(pid) : UniqueFd();
    DROVER_TRY(const auto after, try_lock(task));
    DROVER_TRY(const auto still, signature(task));
    if (holder.valid() && !after.held() && still == pid) return holder;
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorKind::kUnavailable,
                  fmt::format("Somebody holds '{}/{}' without saying who", task.path(), kLockFile),
                  "look for the process with 'lslocks'");
    std::this_thread::sleep_for(kSignaturePoll);
  }
}

}  // namespace drover::container
