#include "container/fetch/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fd.h"
#include "base/pidfd.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/units.h"
#include "container/fetch/source.h"

namespace drover::container {
namespace {

constexpr std::size_t kMaxLine = 64 << 10;

/// From here on descriptors are out of the way of those at which the fetcher finds its own.
constexpr int kLowest = kFetcherCache + 1;

Result<UniqueFd> in_memory(const std::string& content) {
  UniqueFd file(::memfd_create("order", MFD_CLOEXEC));
  if (!file.valid()) return fail_errno("Failed to create a file in memory", errno);
  DROVER_CHECK_OK(write_all(file.get(), content, "the fetcher's order"));
  ::lseek(file.get(), 0, SEEK_SET);
  return moved_up(file.get(), kLowest);
}

/// What a client of http looks for: proxies, and who is trusted.
std::map<std::string, std::string> environment() {
  auto variables = minimal_environment();
  for (const char* name : {"http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY",
                           "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"})
    if (const char* value = ::getenv(name); value != nullptr) variables[name] = value;
  return variables;
}

/// The folder of a user below `caches`; only the user enters it, and only by a descriptor of root's.
Result<UniqueFd> open_cache(const std::string& caches, const User& user) {
  DROVER_TRY(const auto all, Directory::create(caches, 0700));
  DROVER_TRY(const auto own, all.make_subdirectory(std::to_string(user.uid), 0700));
  if (::fchown(own.fd(), user.uid, user.gid) != 0)
    return fail_errno(fmt::format("Failed to give '{}' to its user", own.path()), errno);
  return moved_up(own.fd(), kLowest);
}

struct FetcherChild {
  Spawned child;
  UniqueFd words;
};

Result<FetcherChild> start(const std::string& executable, const std::string& spec, int sandbox, int cache) {
  DROVER_TRY(auto words, make_pipe(kLowest));
  DROVER_TRY(const auto input, in_memory(spec));
  DROVER_TRY(const auto folder, moved_up(sandbox, kLowest));

  ChildDescriptors descriptors;
  descriptors.give(input.get(), STDIN_FILENO);
  descriptors.give(words.write.get(), STDOUT_FILENO);
  descriptors.open("/dev/null", STDERR_FILENO);
  descriptors.give(folder.get(), kFetcherSandbox);
  if (cache >= 0) descriptors.give(cache, kFetcherCache);
  descriptors.close_from(cache >= 0 ? kFetcherCache + 1 : kFetcherCache);
  DROVER_TRY(auto child,
             spawn({.program = executable, .arguments = {"drover", "fetcher"}, .environment = environment()},
                   descriptors));
  return FetcherChild{std::move(child), std::move(words.read)};
}

/// What a line means: nothing but progress leaves `last` as it is.
void on_line(std::string_view line, const std::function<void(const std::string&)>& progress,
             std::optional<Status>& last) {
  const auto value = nlohmann::json::parse(line, nullptr, false);
  if (!value.is_object()) return;
  const auto text = [&](const char* name) {
    const auto found = value.find(name);
    return found != value.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (value.contains("progress") && progress) progress(text("progress"));
  if (value.contains("done")) last = Status();
  if (value.contains("message"))
    last = fail(error_kind_from_name(text("kind")), text("message"), text("hint"));
}

/// Whether there is something to be read before the time is over.
bool readable(int fd, std::chrono::steady_clock::time_point until) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    constexpr decltype(left) kLongest = std::numeric_limits<int>::max();
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, kLongest)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
  }
}

/// What the fetcher said last; nothing when it died.
std::optional<Status> listen(int words, const std::function<void(const std::string&)>& progress,
                             std::chrono::seconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  std::optional<Status> last;
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    if (!readable(words, until))
      return fail(ErrorKind::kTimeout,
                  fmt::format("The files of the task were not there after {}", format_duration(longest)),
                  "fetch less, or from a faster server");
    const auto count = ::read(words, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || text.size() > kMaxLine) return last;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      on_line(std::string_view(text).substr(0, end), progress, last);
      text.erase(0, end + 1);
    }
  }
}

}  // namespace

Status fetch_all(const FetchPlan& plan, const std::vector<workload::Fetch>& files, const Directory& sandbox,
                 const User& user, const std::function<void(const std::string&)>& progress,
                 const std::stop_token& stop) {
  if (files.empty()) return {};
  bool wants_cache = false;
  for (const auto& file : files) {
    DROVER_CHECK_OK(source_of(file).map([](auto&&) {}));  // before the first one is brought
    wants_cache = wants_cache || file.cache;
  }
  UniqueFd cache;
  if (wants_cache && !plan.caches.empty()) {
    DROVER_TRY(cache, open_cache(plan.caches, user));
  }
  const FetchSpec spec{files, user, ::getpid(), plan.limits};
  DROVER_TRY(const auto fetcher, start(plan.executable, encode(spec), sandbox.fd(), cache.get()));
  std::optional<Status> last;
  {
    const std::stop_callback end_it(stop, [&] { send_signal(fetcher.child.process, SIGKILL); });
    last = listen(fetcher.words.get(), progress, plan.limits.all);
    // It has said its last word, or cannot be understood any more.
    send_signal(fetcher.child.process, SIGKILL);
  }
  while (::waitpid(fetcher.child.pid, nullptr, 0) < 0 && errno == EINTR) continue;
  if (last && *last) return {};
  if (stop.stop_requested()) return fail(ErrorKind::kConflict, "It was stopped while its files were fetched");
  if (last) return *last;
  return fail(ErrorKind::kInternal, "The fetcher died before it had brought the task's files");
}

}  // namespace drover::container
