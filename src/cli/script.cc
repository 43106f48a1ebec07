#include "cli/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace drover::cli {
namespace {

/// The kernel takes no longer word (MAX_ARG_STRLEN), and a task's definition is to stay small.
constexpr std::size_t kMostText = 64 << 10;

/// Between spaces, with quotes as a shell has them; none when one is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < text.size();
    if (escapes)
      word += text[++i];
    else if (quote != '\0' && c == quote)
      quote = '\0';
    else if (quote == '\0' && (c == '\'' || c == '"'))
      quote = c;
    else if (quote != '\0' || (c != ' ' && c != '\t'))
      word += c;
    else if (std::exchange(in_word, false))
      words.push_back(std::exchange(word, ""));
    if (quote != '\0' || (c != ' ' && c != '\t')) in_word = true;
  }
  if (quote != '\0') return std::nullopt;
  if (in_word) words.push_back(std::move(word));
  return words;
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "dash", "ksh", "zsh"};
  return std::ranges::find(kShells, program.substr(program.rfind('/') + 1)) != kShells.end();
}

}  // namespace

Result<Script> parse_script(std::string_view text) {
  Script script;
  bool has_foreign = false;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    auto line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1) {
      if (const auto words = line.starts_with("#!") ? split_words(line.substr(2)) : std::nullopt)
        script.interpreter = *words;
      continue;
    }
    if (!line.empty() && !line.starts_with('#')) break;
    has_foreign = has_foreign || line.starts_with("#SBATCH") || line.starts_with("#PBS");
    constexpr std::string_view kMark = "#DROVER";
    if (!line.starts_with(kMark)) continue;
    auto words = split_words(line.substr(kMark.size()));
    if (!words) return fail(ErrorKind::kInvalid, fmt::format("line {}: a quote is not closed", number));
    script.directives.push_back({number, std::move(*words)});
  }
  if (script.interpreter.empty())
    return fail(ErrorKind::kInvalid, "The script does not say what runs it",
                "begin it with a line like #!/bin/bash");
  script.has_foreign_directives = has_foreign && script.directives.empty();
  return script;
}

std::vector<std::string> command_of(const Script& script, const std::string& text, const std::string& path,
                                    const std::vector<std::string>& arguments) {
  auto command = script.interpreter;
  // "/usr/bin/env bash"
  const bool by_env = command.size() > 1 && command.front().ends_with("/env");
  const bool as_text =
      is_shell(command[by_env ? 1 : 0]) && text.size() <= kMostText && text.find('\0') == std::string::npos;
  if (as_text) command.insert(command.end(), {"-c", text});
  command.push_back(path);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace drover::cli
