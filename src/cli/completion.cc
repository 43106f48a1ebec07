#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace drover::cli {
namespace {

/// What 'drover ids' lists, by the names that arguments have.
constexpr std::array<std::string_view, 3> kWithIds = {"TASK", "APP", "JOB"};

struct Flag {
  std::vector<std::string> names;  ///< "--gpus", "-d"
  std::string help;
  bool takes_value = false;
};

/// One command as all three shells need it.
struct Command {
  std::string path;  ///< "files ls"; "" for the program itself
  std::string help;
  std::vector<std::pair<std::string, std::string>> subcommands;  ///< name, help
  std::vector<Flag> flags;
  std::string ids;  ///< what its argument names: "TASK", "APP", "JOB"; "" for anything else
};

Flag flag_of(const CLI::Option& option) {
  Flag flag{{}, option.get_description(), option.get_items_expected_max() > 0};
  for (const auto& name : option.get_lnames()) flag.names.push_back("--" + name);
  for (const auto& name : option.get_snames()) flag.names.push_back("-" + name);
  return flag;
}

void collect(const CLI::App& app, const std::string& path, std::vector<Command>& commands) {
  Command command{path, app.get_description(), {}, {}, ""};
  for (const auto* option : app.get_options()) {
    if (option->nonpositional() && !option->get_group().empty()) command.flags.push_back(flag_of(*option));
    if (option->get_positional() && std::ranges::count(kWithIds, option->get_type_name()) > 0)
      command.ids = option->get_type_name();
  }
  std::vector<const CLI::App*> children;
  for (const auto* child : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!child->get_group().empty()) children.push_back(child);
  for (const auto* child : children)
    command.subcommands.emplace_back(child->get_name(), child->get_description());
  commands.push_back(std::move(command));
  for (const auto* child : children)
    collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), commands);
}

std::string words_of(const Command& command) {
  std::vector<std::string> words;
  for (const auto& [name, help] : command.subcommands) words.push_back(name);
  for (const auto& flag : command.flags) words.insert(words.end(), flag.names.begin(), flag.names.end());
  return fmt::format("{}", fmt::join(words, " "));
}

std::string in_single_quotes(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

/// Which command the words before the cursor name, left in $found: shell code that bash and zsh both read.
std::string find_command_code(const std::vector<Command>& commands) {
  std::vector<std::string> paths;
  for (const auto& command : commands)
    if (!command.path.empty()) paths.push_back(in_single_quotes(command.path));
  return fmt::format(R"(  for word in "${{typed[@]}}"; do
    case "$word" in --) return ;; -*) continue ;; esac
    candidate="${{found:+$found }}$word"
    case "$candidate" in {}) found="$candidate" ;; esac
  done
  case "$found" in
)",
                     fmt::join(paths, "|"));
}

std::string bash_script(const std::vector<Command>& commands) {
  std::string cases;
  for (const auto& command : commands)
    cases += fmt::format("    '{}') words='{}' ids='{}' ;;\n", command.path, words_of(command), command.ids);
  return fmt::format(R"sh(# bash completion for drover: source it, or put it into bash-completion's folder
_drover() {{
  local found='' candidate word words ids typed
  typed=("${{COMP_WORDS[@]:1:COMP_CWORD-1}}")
{}{}  esac
  [ -z "$ids" ] || words="$words $(drover ids "$ids" 2>/dev/null)"
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _drover drover
)sh",
                     find_command_code(commands), cases);
}

/// For zsh's _describe, in which a colon separates a word from its help.
std::string described(const std::string& word, const std::string& help) {
  std::string escaped;
  for (const char c : word + "\n" + help) {
    if (c == ':') escaped += '\\';
    escaped += c == '\n' ? ':' : c;
  }
  return in_single_quotes(escaped);
}

std::string zsh_script(const std::vector<Command>& commands) {
  std::string cases;
  for (const auto& command : commands) {
    std::string words;
    for (const auto& [name, help] : command.subcommands) words += " " + described(name, help);
    for (const auto& flag : command.flags)
      for (const auto& name : flag.names) words += " " + described(name, flag.help);
    cases += fmt::format("    '{}') offers=({}) ids='{}' ;;\n", command.path, words, command.ids);
  }
  return fmt::format(R"sh(#compdef drover
# zsh completion for drover: put it as _drover into a folder of $fpath
_drover() {{
  local found='' candidate word ids
  local -a typed offers
  typed=("${{(@)words[2,CURRENT-1]}}")
{}{}  esac
  [[ -z "$ids" ]] || offers+=(${{(f)"$(drover ids "$ids" 2>/dev/null)"}})
  _describe 'drover' offers || _files
}}
if [[ "${{funcstack[1]}}" == _drover ]]; then _drover "$@"; else compdef _drover drover; fi
)sh",
                     find_command_code(commands), cases);
}

/// True for fish when exactly the words of this command have been typed so far.
std::string fish_condition(const Command& command) {
  return in_single_quotes(fmt::format("test (__drover_command) = \"{}\"", command.path));
}

std::string fish_script(const std::vector<Command>& commands) {
  std::vector<std::string> paths;
  for (const auto& command : commands)
    if (!command.path.empty()) paths.push_back(in_single_quotes(command.path));
  std::string script =
      fmt::format(R"(# fish completion for drover: put it as drover.fish into fish's completions folder
function __drover_command
  set -l path ''
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and continue
    set -l candidate (string trim -- "$path $word")
    contains -- $candidate {}; and set path $candidate
  end
  echo -- "$path"
end
)",
                  fmt::join(paths, " "));
  for (const auto& command : commands) {
    const auto condition = fish_condition(command);
    for (const auto& [name, help] : command.subcommands)
      script +=
          fmt::format("complete -c drover -n {} -f -a {} -d {}\n", condition, name, in_single_quotes(help));
    if (!command.ids.empty())
      script += fmt::format("complete -c drover -n {} -f -a '(drover ids {} 2>/dev/null)'\n", condition,
                            command.ids);
    for (const auto& flag : command.flags) {
      script += fmt::format("complete -c drover -n {}", condition);
      for (const auto& name : flag.names)
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      script += fmt::format("{} -d {}\n", flag.takes_value ? " -r" : "", in_single_quotes(flag.help));
    }
  }
  return script;
}

}  // namespace

Result<std::string> completion_script(const CLI::App& app, const std::string& shell) {
  std::vector<Command> commands;
  collect(app, "", commands);
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return fail(ErrorKind::kInvalid, fmt::format("There is no completion for the shell '{}'", shell),
              "it is one of bash, zsh and fish");
}

}  // namespace drover::cli
