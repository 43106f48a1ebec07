#include "container/runtime.h"

#include <fmt/format.h>

#include "base/process.h"

namespace drover::container {
namespace {

constexpr auto kVersionTimeout = std::chrono::seconds(10);
constexpr const char* kInstallHint = "install one with 'apt-get install runc' or 'dnf install runc'";

std::string version_of(const std::string& path) {
  Command command;
  command.arguments = {path, "--version"};
  command.environment = minimal_environment();
  command.timeout = kVersionTimeout;
  const auto completed = run_command(command);
  return completed ? parse_runtime_version(completed->output) : "";
}

RuntimeReport try_runtime(const std::string& name,
                          const std::function<Status(const std::string& path)>& trial) {
  RuntimeReport report{name, "", "", std::nullopt};
  const auto path = find_program(name);
  if (!path) {
    report.refused = path.error();
    return report;
  }
  report.path = *path;
  report.version = version_of(*path);
  if (const auto ran = trial(*path); !ran) report.refused = ran.error();
  return report;
}

}  // namespace

std::vector<RuntimeReport> try_runtimes(const std::string& wanted,
                                        const std::function<Status(const std::string& path)>& trial) {
  const auto names = wanted.empty() ? std::vector<std::string>{"runc", "crun"} : std::vector{wanted};
  std::vector<RuntimeReport> reports;
  for (const auto& name : names) {
    reports.push_back(try_runtime(name, trial));
    if (reports.back().works()) break;
  }
  return reports;
}

Error no_runtime(const std::vector<RuntimeReport>& reports) {
  Error error{ErrorKind::kUnavailable, "No OCI runtime works on this machine", kInstallHint, ""};
  for (const auto& report : reports)
    if (report.refused) error.message += fmt::format("; {}: {}", report.name, report.refused->message);
  return error;
}

std::string parse_runtime_version(std::string_view output) {
  constexpr std::string_view kMark = "version ";
  const auto line = output.substr(0, output.find('\n'));
  const auto at = line.find(kMark);
  if (at == std::string_view::npos) return "";
  const auto version = line.substr(at + kMark.size());
  return std::string(version.substr(0, version.find_first_of(" \t\r+")));
}

}  // namespace drover::container
