#include "cli/context.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "cli/list_format.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

/// Further lines of a message are indented. What is not came out of somebody's text, to look like a message
/// of its own.
std::string as_message(std::string_view text) {
  auto message = printable_lines(text);
  for (auto at = message.find('\n'); at != std::string::npos; at = message.find('\n', at + 1))
    if (at + 1 == message.size() || message[at + 1] != ' ') message[at] = '?';
  return message;
}

/// Whether errors are for a program.
bool errors_are_json = false;

}  // namespace

void report_errors_as_json(bool wanted) {
  errors_are_json = wanted;
}

void report(std::string_view text) {
  write_all(STDERR_FILENO, fmt::format("drover: {}\n", as_message(text)), "standard error");
}

void report_error(const Error& error) {
  if (errors_are_json) {
    const nlohmann::json told = {{"kind", error_kind_info(error.kind).name},
                                 {"message", error.message},
                                 {"hint", error.hint},
                                 {"path", error.path}};
    write_all(STDERR_FILENO, printable_json(to_text(nlohmann::json{{"error", told}})) + "\n",
              "standard error");
    return;
  }
  // "?path" is a parameter of the API's, which nobody has written here.
  const bool told = error.path.empty() || error.path.starts_with('?');
  report(told ? error.message : error.path + ": " + error.message);
  if (!error.hint.empty())
    write_all(STDERR_FILENO, "        " + as_message(error.hint) + "\n", "standard error");
}

void print(std::string_view text) {
  write_all(STDOUT_FILENO, text, "standard output");
}

std::size_t columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string shown(const Table& table, bool header) {
  return table.render({.width = columns(), .colours = colours(STDOUT_FILENO), .header = header});
}

void add_list_flags(CLI::App& command, TableOptions& options) {
  const auto take = [&options](const std::string& format) {
    if (format == "json")
      options.json = true;
    else
      options.format = format;
  };
  command.add_flag("--json", options.json, "Print JSON");
  command
      .add_option_function<std::string>("--format", take,
                                        "These columns: id,state; or a line for each: '{id} is {state}'")
      ->type_name("FORMAT");
  command.add_flag("--no-header", options.no_header, "Without the names of the columns");
}

Result<std::string> shown(const Table& table, const TableOptions& options) {
  if (options.format.empty()) return shown(table, !options.no_header);
  DROVER_TRY(const auto format, ListFormat::parse(options.format));
  DROVER_TRY(const auto chosen, table.with(format.names()));
  if (!format.is_text()) return shown(chosen, !options.no_header);
  std::string text;
  for (const auto& row : chosen.texts()) text += format.line(row);
  return text;
}

void print_json(const nlohmann::json& value) {
  print(printable_json(to_text(value, 2)) + "\n");
}

bool colours(int fd) {
  const char* refused = std::getenv("NO_COLOR");
  return ::isatty(fd) == 1 && (refused == nullptr || *refused == '\0');
}

void finish(Context& context, const Result<int>& result) {
  if (!result) report_error(result.error());
  context.exit_status = result ? *result : error_kind_info(result.error().kind).exit_status;
}

std::string task_target(const std::string& id, const std::string& rest) {
  return "/v1/tasks/" + percent_encode(id) + rest;
}

}  // namespace drover::cli
