#include "cli/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>
#include <set>
#include <vector>

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

/// The parser's own sentences, and what is said in their place: $1 is the flag.
struct Sentence {
  std::regex parsers;
  const char* ours;
};

std::string own_words(const std::string& message) {
  static const std::vector<Sentence> sentences = {
      {std::regex(R"((--?[\w-]+)(?:,\S+)?: \d+ required .*missing)"), "$1 needs a value"},
      {std::regex(R"((--?[\w-]+)(?:,\S+)?: At Most 1 required but received \d+)"),
       "$1 is given more than once"},
      {std::regex(R"((\S+): At Most (\d+) required but received \d+)"),
       "at most $2 of $1 can be named at once"},
      {std::regex(R"((--?[\w-]+)(?:,\S+)?: Value (\S*) not in range (\S+) to (\S+))"),
       "$1: '$2' is not between $3 and $4"},
      {std::regex(R"((\S+): Value (\S*) not in range (\S+) to (\S+))"), "'$2' is not between $3 and $4"},
      {std::regex(R"(Could not convert: (--?[\w-]+)(?:,\S+)? = (.*))"), "$1: '$2' is not what it takes"},
      {std::regex(R"(Could not convert: (\S+) = (.*))"), "'$2' is not a number"},
      {std::regex(R"((\S+) requires (\S+))"), "$1 is only of use with $2"},
  };
  for (const auto& [parsers, ours] : sentences)
    if (std::regex_match(message, parsers)) return std::regex_replace(message, parsers, ours);
  static const std::regex none_of(R"((--?[\w-]+)(?:,\S+)?: (.*) not in (\{.*\}))");
  if (std::smatch found; std::regex_match(message, found, none_of))
    return fmt::format("{}: '{}' is none of {}", found[1].str(), found[2].str(), listed(found[3]));
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
  return {ErrorKind::kInvalid,
          fmt::format("'{}' needs a {}", full_name(command), argument_name(command, what)),
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

}  // namespace drover::cli
