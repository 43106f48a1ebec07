#include "container/shim_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <vector>

#include "base/process.h"
#include "container/shim.h"
#include "container/supervisor.h"

namespace drover::container {
namespace {

constexpr std::size_t kMaxWord = 16384;

struct FileActions {
  FileActions() { ::posix_spawn_file_actions_init(&actions); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t actions;
};

struct Attributes {
  Attributes() {
    const auto blocked = supervised_signals();
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &blocked);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  posix_spawnattr_t attributes;
};

}  // namespace

Result<SpawnedShim> spawn_shim(const std::string& executable, const std::string& task_folder) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return fail_errno("Failed to create a pipe", errno);
  SpawnedShim shim;
  shim.word.reset(fds[0]);
  const UniqueFd far_end(fds[1]);

  FileActions files;
  ::posix_spawn_file_actions_adddup2(&files.actions, far_end.get(), kShimWordDescriptor);
  for (const int standard : {0, 1, 2})
    ::posix_spawn_file_actions_addopen(&files.actions, standard, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&files.actions, kShimWordDescriptor + 1);

  std::vector<std::string> words = {"drover", "shim", task_folder};
  std::vector<char*> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  std::vector<std::string> assignments;
  for (const auto& [name, value] : minimal_environment()) assignments.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (auto& assignment : assignments) environment.push_back(assignment.data());
  environment.push_back(nullptr);

  const Attributes attributes;
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, executable.c_str(), &files.actions, &attributes.attributes,
                                  arguments.data(), environment.data());
  if (error != 0) return fail_errno(fmt::format("Failed to start '{} shim'", executable), error);
  shim.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!shim.process.valid()) return fail_errno("Failed to watch the shim", errno);
  return shim;
}

Result<FirstWord> await_word(const SpawnedShim& shim, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string text;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waited{shim.word.get(), POLLIN, 0};
    if (left.count() < 0)
      return fail(ErrorKind::kTimeout, fmt::format("The shim said nothing for {} ms", timeout.count()));
    if (::poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000))) <= 0) continue;
    std::array<char, 4096> buffer;
    const auto count = ::read(shim.word.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || text.size() > kMaxWord) return parse_word(text);
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Result<FirstWord> parse_word(std::string_view text) {
  constexpr std::string_view kFailed = kWordFailed;
  if (text == kWordStarted) return FirstWord::kStarted;
  if (text == kWordTaken) return FirstWord::kTaken;
  if (!text.starts_with(kFailed))
    return fail(ErrorKind::kInternal, "The shim died before it could start the task");
  text.remove_prefix(kFailed.size());
  const auto kind_end = std::min(text.find(' '), text.size());
  const auto hint_begin = std::max(std::min(text.rfind('\n'), text.size()), kind_end);
  const auto message = text.substr(kind_end, hint_begin - kind_end);
  const auto hint = text.substr(hint_begin);
  return fail(error_kind_from_name(text.substr(0, kind_end)),
              std::string(message.substr(std::min<std::size_t>(1, message.size()))),
              std::string(hint.substr(std::min<std::size_t>(1, hint.size()))));
}

}  // namespace drover::container
