#include "container/shim_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/process.h"
#include "base/spawn.h"
#include "container/shim.h"
#include "container/supervisor.h"

namespace drover::container {
namespace {

constexpr std::size_t kMaxReadinessBytes = 16384;

}  // namespace

Result<SpawnedShim> spawn_shim(const std::string& executable, const std::string& task_folder) {
  DROVER_TRY(auto words, make_pipe());
  ChildDescriptors descriptors;
  descriptors.give(words.write.get(), kReadinessDescriptor);
  for (const int standard : {0, 1, 2}) descriptors.open("/dev/null", standard);
  descriptors.close_from(kReadinessDescriptor + 1);
  DROVER_TRY(auto child, spawn({.program = executable,
                                .arguments = {"drover", "shim", task_folder},
                                .environment = minimal_environment(),
                                .blocked = supervised_signals()},
                               descriptors));
  return SpawnedShim{.process = std::move(child.process), .readiness = std::move(words.read)};
}

Result<Readiness> await_readiness(const SpawnedShim& shim, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string text;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waited{shim.readiness.get(), POLLIN, 0};
    if (left.count() < 0)
      return fail(ErrorKind::kTimeout, fmt::format("The shim said nothing for {} ms", timeout.count()));
    if (::poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000))) <= 0) continue;
    std::array<char, 4096> buffer;
    const auto count = ::read(shim.readiness.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || text.size() > kMaxReadinessBytes) return parse_readiness(text);
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Result<Readiness> parse_readiness(std::string_view text) {
  constexpr std::string_view kFailed = kShimFailed;
  if (text == kShimStarted) return Readiness::kStarted;
  if (text == kShimTaken) return Readiness::kTaken;
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
