#include "cli/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/line.h"

namespace drover::cli {
namespace {

/// The innermost command that was named.
const CLI::App& named_command(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : named_command(*named.back());
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* child : command.get_subcommands([](const CLI::App*) { return true; }))
    if (!child->get_group().empty()) names.push_back(child->get_name());
  return names;
}

/// How many letters are wrong, missing, too many, or stand in each other's place.
std::size_t typing_errors(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      auto& here = cost[i][j];
      here = std::max(i, j);
      if (i == 0 || j == 0) continue;
      here = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        here = std::min(here, cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

/// The one that was meant, if `word` is it but for a slip of the finger; "" when none is.
std::string meant_by(std::string_view word, const std::set<std::string>& known) {
  constexpr std::size_t kShort = 5;
  constexpr std::size_t kLongest = 64;  // nobody's slip is longer, and the work grows with the square
  if (word.size() < 2 || word.size() > kLongest) return "";
  // Of two that are equally near, the one of the same length: "rum" was meant to be "run" rather than "rm".
  std::pair<std::size_t, std::size_t> best_distance = {word.size() <= kShort ? 2 : 3, 0};
  std::string best;
  for (const auto& candidate : known) {
    const auto longer = std::max(candidate.size(), word.size()) - std::min(candidate.size(), word.size());
    const std::pair distance(typing_errors(word, candidate), longer);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::set<std::string> long_flags(const CLI::App& command) {
  std::set<std::string> names;
  for (const auto* app = &command; app != nullptr; app = app->get_parent())
    for (const auto* option : app->get_options())
      if (!option->get_group().empty())
        names.insert(option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

std::string did_you_mean(const CLI::App& command, const std::string& word, bool flag) {
  const auto bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const auto names = commands_of(command);
  const auto meant = meant_by(bare, flag ? long_flags(command) : std::set(names.begin(), names.end()));
  if (!meant.empty()) return fmt::format("did you mean '{}{}'?", flag ? "--" : "", meant);
  return fmt::format("'{} --help' lists what there is", full_name(command));
}

/// How an argument is called: "TASK", "FILE".
std::string argument_name(const CLI::App& command, const std::string& name) {
  const auto* option = command.get_option_no_throw(name);
  return option == nullptr ? name : option->get_type_name();
}

/// "{oci,docker}" as "oci, docker".
std::string listed(std::string set) {
  std::string text;
  for (const char c : set)
    if (c == ',')
      text += ", ";
    else if (c != '{' && c != '}')
      text += c;
  return text;
}

/// The parser's own sentences in Drover's: of a value that cannot be, and of flags that are there too often
/// or alone.
std::string own_words(const std::string& message) {
  const auto colon = message.find(": ");
  if (colon == std::string::npos) return message;
  const auto name = message.substr(0, colon);
  const auto rest = message.substr(colon + 2);
  const auto of = [](const std::string& flag) { return flag.starts_with('-') ? flag + ": " : std::string(); };
  if (name == "Could not convert") {  // "NAME = VALUE"
    const auto equals = std::min(rest.find(" = "), rest.size());
    return fmt::format("{}'{}' is not what it takes", of(rest.substr(0, equals)),
                       rest.substr(std::min(equals + 3, rest.size())));
  }
  if (rest.ends_with(" missing")) return name + " needs a value";
  if (rest.starts_with("At Most 1 ")) return name + " is given more than once";
  constexpr std::string_view kValue = "Value ", kRange = " not in range ", kTo = " to ", kSet = " not in {";
  if (const auto at = rest.rfind(kRange); rest.starts_with(kValue) && at != std::string::npos) {
    const auto range = rest.substr(at + kRange.size());
    const auto to = std::min(range.find(kTo), range.size());
    return fmt::format("{}'{}' is not between {} and {}", of(name),
                       rest.substr(kValue.size(), at - kValue.size()), range.substr(0, to),
                       range.substr(std::min(to + kTo.size(), range.size())));
  }
  if (const auto at = rest.rfind(kSet); at != std::string::npos)
    return fmt::format("{}'{}' is none of {}", of(name), rest.substr(0, at),
                       listed(rest.substr(at + kSet.size() - 1)));
  return message;
}

/// What is missing, by the parser's "task is required".
Error missing(const CLI::App& command, const std::string& message) {
  constexpr std::string_view kEnd = " is required";
  const auto what = message.substr(0, message.size() - std::min(message.size(), kEnd.size()));
  if (what == "A subcommand")
    return {ErrorKind::kInvalid,
            fmt::format("'{}' needs one more word: {}", full_name(command),
                        fmt::join(commands_of(command), ", ")),
            fmt::format("'{} --help' says what each does", full_name(command)), ""};
  auto wanted = argument_name(command, what);
  const bool is_choice = wanted.find('|') != std::string::npos;
  for (auto at = wanted.find('|'); at != std::string::npos; at = wanted.find('|'))
    wanted.replace(at, 1, ", ");
  return {ErrorKind::kInvalid,
          fmt::format("'{}' needs {} {}", full_name(command), is_choice ? "one of" : "a", wanted),
          fmt::format("'{} --help' says how it is used", full_name(command)), ""};
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::IsMember(words).description("");
}

CLI::Validator between(int least, int most) {
  return CLI::Range(least, most).description("");
}

Error no_such_flag(const CLI::App& command, const std::string& flag, std::string hint) {
  return {ErrorKind::kInvalid, fmt::format("'{}' has no flag '{}'", full_name(command), flag),
          std::move(hint), ""};
}

Error no_such_command(const CLI::App& command, const std::string& word, std::string hint) {
  const auto* kind =
      command.get_subcommands([](const CLI::App*) { return true; }).empty() ? "argument" : "command";
  return {ErrorKind::kInvalid, fmt::format("'{}' has no {} '{}'", full_name(command), kind, word),
          std::move(hint), ""};
}

Error unknown_word(const CLI::App& command, const std::string& argument) {
  const auto word = argument.substr(0, argument.find('='));
  const bool flag = word.starts_with('-');
  auto hint = did_you_mean(command, word, flag);
  return flag ? no_such_flag(command, word, std::move(hint))
              : no_such_command(command, word, std::move(hint));
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto& command = named_command(app);
  // A word that nobody knows is the mistake, whatever is missing besides.
  const auto rest = app.remaining(true);
  if (!rest.empty()) return unknown_word(command, rest.front());
  const std::string message = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return missing(command, message);
  return {ErrorKind::kInvalid, own_words(message.substr(0, message.find('\n'))),
          fmt::format("'{} --help' says how it is used", full_name(command)), ""};
}

void add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& duration,
                  const std::string& help) {
  const auto take = [name, &duration](const std::string& text) {
    const auto parsed = parse_duration(text);
    if (!parsed || parsed->count() == 0)
      throw CLI::ValidationError(name, "'" + text + "' is no time, which is written as 90s or 15m");
    duration = *parsed;
  };
  command.add_option_function<std::string>(name, take, help)
      ->type_name("TIME")
      ->default_str(format_duration(duration));
}

}  // namespace drover::cli
