#include "cli/definitions/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "base/files.h"
#include "base/units.h"
#include "cli/context.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

Result<std::string> read_input() {
  std::string text;
  std::array<char, 65536> piece;
  for (;;) {
    const auto got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("Failed to read standard input", errno);
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxDefinitionBytes)
      return fail(ErrorKind::kInvalid,
                  fmt::format("Standard input is larger than {} MiB", kMaxDefinitionBytes >> 20));
  }
}

}  // namespace

Result<std::string> read_definition_text(const std::string& file) {
  return file == "-" ? read_input() : read_file(file, kMaxDefinitionBytes);
}

Result<Definitions> read_definition_files(const std::vector<std::string>& files, bool strict) {
  const auto now = wall_clock();
  Definitions definitions;
  for (const auto& file : files) {
    DROVER_TRY(const auto text, read_definition_text(file));
    const bool piped = file == "-";
    std::error_code gone;  // the folder where people are; relative paths are refused then
    const auto folder =
        piped ? std::filesystem::current_path(gone) : std::filesystem::absolute(file, gone).parent_path();
    auto read = read_definitions(piped ? "standard input" : file, folder.string(), text, now);
    if (strict) read.be_strict();
    definitions.add(std::move(read));
  }
  find_doubles(definitions);
  return definitions;
}

void report_warnings(const std::vector<Finding>& warnings) {
  std::string text;
  for (const auto& warning : warnings) text += render_warning(warning);
  write_all(STDERR_FILENO, printable_lines(text), "standard error");
}

int report_findings(const std::vector<Finding>& findings) {
  std::string text;
  for (const auto& finding : findings) text += render(finding);
  text += fmt::format("{} mistake{}\n", findings.size(), findings.size() == 1 ? "" : "s");
  write_all(STDERR_FILENO, printable_lines(text), "standard error");
  return error_kind_info(ErrorKind::kInvalid).exit_status;
}

}  // namespace drover::cli
