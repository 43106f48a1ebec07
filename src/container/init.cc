#include "container/init.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/files.h"
#include "container/runtime_failure.h"
#include "init/program.h"
#include "init/report.h"

namespace drover::container {
namespace {

constexpr const char* kInitFile = "drover-init";
constexpr mode_t kInitMode = 0755;
constexpr const char* kFilter = "--filter";
constexpr const char* kReport = "--report";
constexpr const char* kHold = "--hold";
constexpr const char* kInput = "--input";
constexpr const char* kTerminal = "--terminal";
constexpr std::size_t kLongestReport = 64;

std::vector<std::string> with_words(std::vector<std::string> words, const std::string& folder,
                                    const std::vector<std::string>& command) {
  words.push_back(folder);
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Error filter_failure(int error) {
  return {ErrorKind::kInternal,
          fmt::format("The system calls of the task cannot be limited: {}", ::strerror(error)),
          "the kernel must have seccomp filters (CONFIG_SECCOMP_FILTER)", ""};
}

Error folder_failure(const std::string& folder, int error) {
  const auto kind = error == ENOENT || error == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kPermissionDenied;
  return {kind, fmt::format("Cannot enter the working folder '{}': {}", folder, ::strerror(error)),
          "it must be there, and the task's user must be allowed to enter it", ""};
}

Error command_failure(const std::string& command, int error) {
  if (error == ENOENT || error == ENOTDIR) return missing_command(command);
  return {ErrorKind::kPermissionDenied,
          fmt::format("The command '{}' cannot be executed in the container: {}", command, ::strerror(error)),
          "it must be an executable file that the task's user may run", ""};
}

}  // namespace

Result<std::string> place_init(const std::string& state) {
  const std::string_view program(drover_init_begin,
                                 static_cast<std::size_t>(drover_init_end - drover_init_begin));
  const auto path = state + "/" + kInitFile;
  if (const auto there = read_file(path); there && *there == program) return path;
  DROVER_CHECK_OK(Directory::create(state).map([](auto&&) {}));
  DROVER_CHECK_OK(write_file(path, program, kInitMode));
  return path;
}

std::vector<std::string> init_arguments(const std::string& folder, const std::vector<std::string>& command,
                                        InitInput input) {
  std::vector<std::string> words = {kInitInside, kFilter, kFilterInside, kReport,
                                    std::to_string(kReportDescriptor)};
  if (input != InitInput::kNone) words.emplace_back(input == InitInput::kGiven ? kInput : kTerminal);
  return with_words(std::move(words), folder, command);
}

std::vector<std::string> engine_init_arguments(const std::string& folder,
                                               const std::vector<std::string>& command) {
  return with_words({kInitInside, kHold}, folder, command);
}

bool can_hold(const std::vector<std::string>& first) {
  return first.size() > 1 && first[0] == kInitInside && first[1] == kHold;
}

std::optional<std::vector<std::string>> direct_arguments(const std::vector<std::string>& first,
                                                         const std::vector<std::string>& command, bool held) {
  if (first.empty() || first.front() != kInitInside) return std::nullopt;
  std::vector<std::string> words = {kInitInside};
  std::size_t next = can_hold(first) ? 2 : 1;
  if (held) words.emplace_back(kHold);
  for (; next + 2 < first.size() && (first[next] == kFilter || first[next] == kReport); next += 2)
    if (first[next] == kFilter) words.insert(words.end(), {kFilter, first[next + 1]});
  if (next < first.size() && (first[next] == kInput || first[next] == kTerminal)) ++next;
  if (next >= first.size()) return std::nullopt;
  words.emplace_back("--direct");
  return with_words(std::move(words), first[next], command);
}

void InitReport::append(std::string_view text) {
  unread_ += text;
  for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    take(std::string_view(unread_).substr(0, end));
    unread_.erase(0, end + 1);
  }
  if (unread_.size() > kLongestReport) unread_.clear();
}

void InitReport::take(std::string_view line) {
  const auto space = line.find(' ');
  const auto word = line.substr(0, space);
  int number = 0;
  if (space != std::string_view::npos)
    std::from_chars(line.data() + space + 1, line.data() + line.size(), number);
  if (word == DROVER_INIT_RUNNING) running_ = true;
  if (word == DROVER_INIT_SIGNAL && number > 0 && number < NSIG) signal_ = number;
  if (running_) return;  // what is said of the start afterwards is the task's own invention
  if (word == DROVER_INIT_FILTER) failure_ = filter_failure(number);
  if (word == DROVER_INIT_FOLDER) failure_ = folder_failure(folder_, number);
  if (word == DROVER_INIT_COMMAND) failure_ = command_failure(command_, number);
}

}  // namespace drover::container
