#include "cli/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/decode.h"

namespace drover::cli {
namespace {

/// The innermost command that was named.
const CLI::App& named_command(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : named_command(*named.back());
}

/// "drover files ls"
std::string full_name(const CLI::App& command) {
  const auto* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

/// The word that was meant, if it is near: dashes make no flag nearer to another.
std::string nearest_word(const std::string& word, const std::set<std::string>& known) {
  const auto bare = [](const std::string& text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  std::map<std::string, std::string> by_bare_word;
  std::set<std::string> bare_words;
  for (const auto& candidate : known) {
    by_bare_word[bare(candidate)] = candidate;
    bare_words.insert(bare(candidate));
  }
  const auto meant = nearest(bare(word), bare_words);
  return meant.empty() ? "" : by_bare_word.at(meant);
}

/// Every word that could stand there: the flags of the command and of its parents, and its subcommands.
std::set<std::string> known_words(const CLI::App& command) {
  std::set<std::string> words;
  for (const auto* child : command.get_subcommands([](const CLI::App*) { return true; }))
    if (!child->get_group().empty()) words.insert(child->get_name());
  for (const auto* app = &command; app != nullptr; app = app->get_parent())
    for (const auto* option : app->get_options())
      for (const auto& name : option->get_lnames()) words.insert("--" + name);
  return words;
}

}  // namespace

Error unknown_word(const CLI::App& command, const std::string& argument) {
  const auto word = argument.substr(0, argument.find('='));
  const bool flag = word.starts_with('-');
  const auto meant = nearest_word(word, known_words(command));
  auto hint = fmt::format("'{} --help' lists what there is", full_name(command));
  if (flag && command.get_name() == "run") hint = "write the command to run, with its own flags, after '--'";
  if (!meant.empty()) hint = fmt::format("did you mean '{}'?", meant);
  const auto* kind = flag                                                                    ? "flag"
                     : command.get_subcommands([](const CLI::App*) { return true; }).empty() ? "argument"
                                                                                             : "command";
  return {ErrorKind::kInvalid, fmt::format("'{}' has no {} '{}'", full_name(command), kind, word), hint, ""};
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto& command = named_command(app);
  // A word that nobody knows is the mistake, whatever is missing besides.
  const auto rest = app.remaining(true);
  if (!rest.empty()) return unknown_word(command, rest.front());
  const std::string message = error.what();
  return {ErrorKind::kInvalid, message.substr(0, message.find('\n')),
          fmt::format("'{} --help' says how it is used", full_name(command)), ""};
}

}  // namespace drover::cli
