#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/line.h"
#include "workload/event_kinds.h"

namespace drover::cli {
namespace {

/// What there are names of, by the type names of flags and arguments.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kKinds = {
    {{"TASK", "TASK"},
     {"APP", "APP"},
     {"DEPLOYMENT", "DEPLOYMENT"},
     {"JOB", "JOB"},
     {"QUEUE", "QUEUE"},
     {"IMAGE", "IMAGE"},
     {"REF", "IMAGE"},
     {"MODEL", "MODEL"},
     {"GPU", "GPU"},
     {"PROFILE", "PROFILE"}}};

std::string kind_of(const std::string& type, const std::string& path) {
  const auto found = std::ranges::find(kKinds, type, &std::pair<std::string_view, std::string_view>::first);
  if (found == kKinds.end()) return "";
  if (type == "TASK" && (path == "stop" || path == "exec" || path == "resize")) return "RUNNING";
  return type == "TASK" && path == "rm" ? "ENDED" : std::string(found->second);
}

class Collector {
 public:
  Collector(const Line& line, std::string current) : line_(line), current_(std::move(current)) {}

  Offers take() && {
    offers_.values = line_.values();
    if (line_.in_command_to_run()) return std::move(offers_);
    const auto equals = current_.starts_with("--") ? current_.find('=') : std::string::npos;
    if (line_.awaits() != nullptr)
      add_values(*line_.awaits());
    else if (equals != std::string::npos)
      add_value_of(current_.substr(0, equals));
    else
      add_words();
    return std::move(offers_);
  }

 private:
  void add(const std::string& word, const std::string& meaning) {
    if (word.starts_with(current_)) offers_.words.emplace_back(word, meaning);
  }

  /// The words that its type name lists ("on|off"), or what the daemon knows.
  void add_values(const CLI::Option& option) {
    const auto whole = option.get_type_name();
    const auto type = whole.substr(0, whole.find('['));  // "TASK[:ok|failed|any]"
    offers_.kind = kind_of(type, path_of(line_.command()));
    if (type == kEventType)
      for (const auto kind : workload::kEventKinds) add(offers_.prefix + std::string(kind), "");
    if (type.find('|') == std::string::npos) return;
    for (std::size_t begin = 0; begin < type.size();) {
      const auto end = std::min(type.find('|', begin), type.size());
      add(offers_.prefix + type.substr(begin, end - begin), "");
      begin = end + 1;
    }
  }

  void add_value_of(const std::string& flag) {
    offers_.prefix = flag + "=";
    for (const auto* app = &line_.command(); app != nullptr; app = app->get_parent())
      if (const auto* option = app->get_option_no_throw(flag); option != nullptr) return add_values(*option);
  }

  void add_words() {
    const auto& command = line_.command();
    const auto* argument = line_.next_argument();
    if (argument != nullptr && argument->get_type_name() == kCommandWords)
      add_commands(command.get_parent() == nullptr ? command : *command.get_parent());
    else if (argument != nullptr && !current_.starts_with('-'))
      add_values(*argument);
    add_commands(command);
    const bool nothing_else = offers_.words.empty() && argument == nullptr;
    if (current_.starts_with('-') || nothing_else) add_flags();
  }

  void add_commands(const CLI::App& command) {
    for (const auto* child : command.get_subcommands([](const CLI::App*) { return true; }))
      if (!child->get_group().empty()) add(child->get_name(), child->get_description());
  }

  void add_flags() {
    for (const auto* app = &line_.command(); app != nullptr; app = app->get_parent())
      for (const auto* option : app->get_options()) {
        if (!option->nonpositional() || option->get_group().empty()) continue;
        if (app != &line_.command() && option->check_lname("help")) continue;  // its own is there
        for (const auto& name : option->get_lnames()) add("--" + name, option->get_description());
        for (const auto& name : option->get_snames()) add("-" + name, option->get_description());
      }
  }

  const Line& line_;
  std::string current_;
  Offers offers_;
};

constexpr std::string_view kBash =
    R"sh(# bash completion for drover: source it, or put it into bash-completion's folder
_drover() {
  local typed=() word
  # bash has taken words apart at ':' and '='
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ ${#typed[@]} -gt 0 && ( $word == [:=] || ${typed[-1]} == *[:=] ) ]]; then
      typed[-1]+=$word
    else
      typed+=("$word")
    fi
  done
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete bash -- "${typed[@]}" 2>/dev/null)
  word=${typed[-1]}
  [[ $word != *[:=]* ]] || COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[:=]}"}"}")
}
complete -o default -F _drover drover
)sh";

constexpr std::string_view kZsh = R"sh(#compdef drover
# zsh completion for drover: put it as _drover into a folder of $fpath
_drover() {
  local -a offers
  offers=("${(@f)$("${words[1]}" complete zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  offers=(${offers:#})
  (( ${#offers} )) && _describe 'drover' offers || _files
}
if [[ "${funcstack[1]}" == _drover ]]; then _drover "$@"; else compdef _drover drover; fi
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion for drover: put it as drover.fish into fish's completions folder
function __drover_offers
  set -l typed (commandline -opc) (commandline -ct)
  $typed[1] complete fish -- $typed[2..-1] 2>/dev/null
end
complete -c drover -n 'test (count (__drover_offers)) -gt 0' -f -a '(__drover_offers)'
)sh";

}  // namespace

Offers offers(const CLI::App& program, const std::vector<std::string>& typed) {
  Line line(program);
  for (std::size_t i = 0; i + 1 < typed.size(); ++i)
    (void)line.take(typed[i]);  // what is wrong is told when it is called
  return Collector(line, typed.empty() ? "" : typed.back()).take();
}

std::string offer_line(const std::string& shell, const std::string& word, const std::string& meaning) {
  if (shell == "fish") return word + "\t" + meaning + "\n";
  if (shell != "zsh") return word + "\n";
  // For _describe, in which a colon separates a word from what it means.
  std::string text;
  for (const char c : word) {
    if (c == ':') text += '\\';
    text += c;
  }
  return text + (meaning.empty() ? "" : ":" + meaning) + "\n";
}

Result<std::string> completion_script(const std::string& shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return fail(ErrorKind::kInvalid, fmt::format("There is no completion for the shell '{}'", shell),
              "it is one of bash, zsh and fish");
}

}  // namespace drover::cli
