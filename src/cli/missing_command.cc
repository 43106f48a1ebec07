#include "cli/missing_command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

using nlohmann::json;

/// The first word of its command, where it ended for want of that; "" else.
std::string missing_command(const json& record) {
  const auto reason = record.value("reason", "");
  const auto command = record.value("task", json::object()).value("command", std::vector<std::string>());
  if (command.empty()) return "";
  for (const char* beginning : {"There is no command '", "The command '"})
    if (reason.find(beginning + command.front() + "'") != std::string::npos) return command.front();
  return "";
}

Nearby nearby_by(const std::string& command) {
  struct stat info{};
  if (command.empty() || command.front() == '/' || ::stat(command.c_str(), &info) != 0 ||
      !S_ISREG(info.st_mode))
    return Nearby::kNothing;
  return ::access(command.c_str(), X_OK) == 0 ? Nearby::kProgram : Nearby::kFile;
}

}  // namespace

std::string missing_command_hint(const json& record, const std::string& folder, Nearby nearby) {
  const auto command = missing_command(record);
  if (command.empty() || nearby == Nearby::kNothing) return "";
  const auto& task = record.at("task");
  const auto here = fmt::format("'{}' lies in the folder where you are", command);
  if (task.contains("image"))
    return fmt::format("{}, which the image does not have: add --volume .:/work --workdir /work{}", here,
                       command.starts_with("./") ? "" : fmt::format(", and write ./{}", command));
  if (task.value("working_directory", "") != folder)
    return fmt::format(
        "{}, and the task starts elsewhere: add --workdir .{}", here,
        command.find('/') == std::string::npos ? fmt::format(", and write ./{}", command) : "");
  if (nearby == Nearby::kFile)
    return fmt::format(
        "{} and is not executable: 'chmod +x {}' makes it so, or put the program that runs it before it",
        here, command);
  return command.find('/') == std::string::npos ? fmt::format("{}: write ./{}", here, command) : "";
}

std::string missing_command_hint(const json& record) {
  const auto command = missing_command(record);
  std::error_code error;
  const auto folder = std::filesystem::current_path(error).string();
  return error ? "" : missing_command_hint(record, folder, nearby_by(command));
}

}  // namespace drover::cli
