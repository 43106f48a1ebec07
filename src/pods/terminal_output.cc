#include "pods/terminal_output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <utility>

#include "base/stop_after.h"
#include "pods/log_copy.h"

namespace drover::pods {
namespace {

constexpr const char* kBeginFile = "terminal.begin";
constexpr std::chrono::milliseconds kCatchingUp{20'000};

std::uint64_t size_of(const UniqueFd& file) {
  struct stat found{};
  return ::fstat(file.get(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

}  // namespace

Result<TerminalOutput> TerminalOutput::open(const Directory& task, const kube::ObjectPath& pod) {
  DROVER_TRY(auto file, open_output(task));
  std::uint64_t begin = 0;
  std::string whose;
  if (const auto text = task.read(kBeginFile)) std::istringstream(*text) >> begin >> whose;
  if (whose != pod.name) {
    begin = size_of(file);
    DROVER_CHECK_OK(task.write(kBeginFile, fmt::format("{} {}\n", begin, pod.name), 0600));
  }
  return TerminalOutput(pod, std::move(file), begin);
}

Status TerminalOutput::catch_up(kube::Api& api, const std::stop_token& stop) {
  const StopAfter limit(kCatchingUp, stop);
  const auto added = append_terminal_log(api, pod_, file_.get(), size(), limit.token());
  return added || added.error().kind == ErrorKind::kNotFound ? Status() : added;
}

void TerminalOutput::add(std::string_view piece, bool first) {
  if (first) piece.remove_prefix(repeated(piece));
  static_cast<void>(write_all(file_.get(), piece, "stdout"));
}

/// Of the attempt's own.
std::uint64_t TerminalOutput::size() const {
  const auto whole = size_of(file_);
  return whole - std::min(whole, begin_);
}

/// So much of the beginning of `piece` stands at the end already.
std::size_t TerminalOutput::repeated(std::string_view piece) const {
  const auto own = size();
  std::string last(std::min<std::uint64_t>(piece.size(), own), '\0');
  const auto at = static_cast<off_t>(begin_ + own - last.size());
  if (::pread(file_.get(), last.data(), last.size(), at) != static_cast<ssize_t>(last.size())) return 0;
  auto length = last.size();
  while (!last.ends_with(piece.substr(0, length))) --length;
  return length;
}

}  // namespace drover::pods
