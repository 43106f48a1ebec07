#include "cli/services/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iterator>

#include "base/shorten.h"
#include "cli/context.h"
#include "cli/printable.h"
#include "cli/services/fields.h"
#include "cli/table.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kLines = 5;
constexpr std::size_t kLongestShown = 200;
constexpr std::size_t kBytesKept = 64 * 1024;
constexpr std::size_t kBytesRead = 1024 * 1024;  ///< lines may be long
constexpr std::string_view kOfMesos = "Command ";

/// The last lines with something in them.
std::vector<std::string> last_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < kLines) {
    const auto begin = text.rfind('\n') + 1;  // 0 when there is none
    if (const auto line = text.substr(begin); line.find_first_not_of(" \t\r") != std::string_view::npos)
      lines.push_back(shortened(printable(line), kLongestShown));
    text = text.substr(0, begin == 0 ? 0 : begin - 1);
  }
  std::ranges::reverse(lines);
  return lines;
}

std::vector<std::string> last_lines_of(const Client& client, const std::string& task, const char* stream) {
  std::string text;
  std::size_t read = 0;
  const auto take = [&](std::string_view piece) {
    text += piece;
    read += piece.size();
    if (text.size() > kBytesKept) text.erase(0, text.size() - kBytesKept);
    return read < kBytesRead;
  };
  const auto target = task_target(task, fmt::format("/logs?stream={}&tail={}", stream, kLines));
  if (!client.stream(target, "", take)) return {};
  return last_lines(text);
}

std::string age_of(const AppFailure& failure, TimePoint now) {
  if (!failure.at) return "";
  const auto age =
      std::max(std::chrono::floor<std::chrono::seconds>(now - *failure.at), std::chrono::seconds(0));
  if (age < std::chrono::minutes(1)) return fmt::format(" {}s ago", age.count());
  return fmt::format(" {} ago", format_duration(age));
}

/// All lines, without what may be a digit of an id, a port or a time.
std::string without_numbers(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    std::ranges::copy_if(line, std::back_inserter(text),
                         [](unsigned char c) { return std::isxdigit(c) == 0; });
  return text;
}

}  // namespace

bool is_alike(const AppFailure& a, const AppFailure& b) {
  return a.how == b.how && without_numbers(a.output) == without_numbers(b.output);
}

std::optional<AppFailure> last_failure(const json& app) {
  const auto shown = app.value("lastTaskFailure", json());
  if (!shown.is_object()) return std::nullopt;
  AppFailure failure{.app = text_in(app, "id"),
                     .task = text_in(shown, "taskId"),
                     .how = text_in(shown, "message"),
                     .version = text_in(shown, "version"),
                     .at = std::nullopt,
                     .output = {}};
  if (failure.how.starts_with(kOfMesos)) failure.how.erase(0, kOfMesos.size());
  if (const auto at = parse_time(text_in(shown, "timestamp"))) failure.at = *at;
  return failure;
}

void add_output(const Client& client, AppFailure& failure) {
  if (failure.task.empty()) return;
  failure.output = last_lines_of(client, failure.task, "stderr");
  if (failure.output.empty()) failure.output = last_lines_of(client, failure.task, "stdout");
}

std::string failure_text(const AppFailure& failure, TimePoint now, std::size_t columns) {
  const auto fit = [&](std::string line) {
    return (columns == 0 ? line : cut_to_width(line, columns)) + "\n";
  };
  auto text = fit(printable(
      fmt::format("{}: {} failed{}: {}", failure.app, failure.task, age_of(failure, now), failure.how)));
  for (const auto& line : failure.output) text += fit("  | " + line);
  return text;
}

}  // namespace drover::cli
