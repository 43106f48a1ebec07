#include "container/runtime_failure.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace drover::container {
namespace {

using nlohmann::json;

constexpr int kNotFoundStatus = 127;
constexpr int kNotExecutableStatus = 126;
constexpr int kNotStartedStatus = 125;

std::string_view last_line(std::string_view text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  const auto begin = text.rfind('\n');
  return begin == std::string_view::npos ? text : text.substr(begin + 1);
}

/// The message of a log line that tells of an error; "" for any other.
std::string error_message(std::string_view line) {
  const auto entry = json::parse(line, nullptr, false);
  if (!entry.is_object()) return "";
  const auto level = entry.find("level");
  const auto message = entry.find("msg");
  if (level == entry.end() || message == entry.end() || !message->is_string()) return "";
  return *level == "error" || *level == "fatal" ? message->get<std::string>() : "";
}

std::string_view after(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What stands between the first pair of `quote`, or "".
std::string_view quoted(std::string_view text, char quote) {
  const auto begin = text.find(quote);
  const auto end = begin == std::string_view::npos ? begin : text.find(quote, begin + 1);
  return end == std::string_view::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

/// The command that could not be executed. runc: `exec: "x": …`, crun: "executable file `x` …" and
/// "open executable: …".
std::string_view refused_command(std::string_view word) {
  if (const auto at = word.find("exec: \""); at != std::string_view::npos)
    return quoted(word.substr(at), '"');
  if (const auto at = word.find("executable file `"); at != std::string_view::npos)
    return quoted(word.substr(at), '`');
  return "";
}

/// What is known of a runtime that left no word.
std::string silent_end(std::optional<int> wait_status) {
  if (!wait_status) return "it did not say why";
  if (WIFSIGNALED(*wait_status))
    return fmt::format("it was ended by signal {} ({})", WTERMSIG(*wait_status),
                       ::strsignal(WTERMSIG(*wait_status)));
  return fmt::format("it ended with status {} and did not say why", WEXITSTATUS(*wait_status));
}

}  // namespace

std::string last_word(std::string_view log, std::string_view standard_error) {
  std::string word;
  while (!log.empty()) {
    const auto end = log.find('\n');
    if (auto message = error_message(log.substr(0, end)); !message.empty()) word = std::move(message);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
  }
  return word.empty() ? std::string(last_line(standard_error)) : word;
}

Error explain_runtime_failure(const std::string& runtime, std::string_view word,
                              std::optional<int> wait_status) {
  const auto name = std::filesystem::path(runtime).filename().string();
  const auto command = refused_command(word);
  if (!command.empty() && (contains(word, "not found") || contains(word, "no such file")))
    return missing_command(command);
  if (!command.empty() && contains(word, "permission denied"))
    return {ErrorKind::kPermissionDenied,
            fmt::format("The command '{}' cannot be executed in the container", command),
            "it must be an executable file that the task's user may run", ""};
  word = after(word, name + " run failed: ");
  word = after(word, "unable to start container process: ");
  word = after(word, "error during container init: ");
  return {ErrorKind::kUnavailable,
          fmt::format("'{}' could not start the container: {}", name,
                      word.empty() ? silent_end(wait_status) : std::string(word)),
          "'drover doctor' tries the runtime", ""};
}

Error missing_command(std::string_view command) {
  // Those that are no programs anywhere: POSIX's special ones, and what changes the shell itself.
  constexpr std::array<std::string_view, 14> kShellWords = {".",    "alias",  "cd",    "declare", "eval",
                                                            "exec", "export", "local", "set",     "source",
                                                            "trap", "ulimit", "umask", "unset"};
  std::string hint = "check its spelling, the PATH and the image";
  if (std::ranges::find(kShellWords, command) != kShellWords.end())
    hint = fmt::format("'{}' is a word of shells: run sh -c 'LINE'", command);
  else if (command.find_first_of(" \t\n;|&<>$`()") != std::string_view::npos)
    hint = "a line for a shell is run as sh -c 'LINE', and the words of a command are written one by one";
  return {ErrorKind::kNotFound, fmt::format("There is no command '{}' in the container", command),
          std::move(hint), ""};
}

int exit_status_of(const Error& start_failure) {
  if (start_failure.kind == ErrorKind::kNotFound) return kNotFoundStatus;
  return start_failure.kind == ErrorKind::kPermissionDenied ? kNotExecutableStatus : kNotStartedStatus;
}

}  // namespace drover::container
