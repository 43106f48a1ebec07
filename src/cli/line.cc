#include "cli/line.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "cli/usage.h"

namespace drover::cli {
namespace {

const CLI::App* subcommand(const CLI::App& command, std::string_view name) {
  const auto found =
      command.get_subcommands([&](const CLI::App* child) { return child->check_name(std::string(name)); });
  return found.empty() ? nullptr : found.front();
}

std::string joined_path(const CLI::App& command, std::string_view word) {
  const auto path = path_of(command);
  return path.empty() ? std::string(word) : path + " " + std::string(word);
}

std::string long_name(const CLI::Option& flag) {
  return flag.get_lnames().empty() ? "" : "--" + flag.get_lnames().front();
}

}  // namespace

std::string full_name(const CLI::App& command) {
  const auto* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string path_of(const CLI::App& command) {
  const auto* parent = command.get_parent();
  if (parent == nullptr) return "";
  const auto above = path_of(*parent);
  return above.empty() ? command.get_name() : above + " " + command.get_name();
}

bool takes_value(const CLI::Option& flag) {
  return flag.get_items_expected_max() > 0;
}

/// A flag of the command, or of one that it belongs to.
const CLI::Option* Line::find(const std::string& name) const {
  for (const auto* app = command_; app != nullptr; app = app->get_parent())
    if (const auto* option = app->get_option_no_throw(name); option != nullptr && option->nonpositional())
      return option;
  return nullptr;
}

const CLI::Option* Line::next_argument() const {
  const auto all = command_->get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (all.empty()) return nullptr;
  if (words_ < all.size()) return all[words_];
  return all.back()->get_items_expected_max() > 1 ? all.back() : nullptr;
}

Status Line::take(const std::string& word) {
  if (runs_) {
    to_run_.push_back(word);
    return {};
  }
  if (std::exchange(skips_, false)) return {};
  if (word == "--") {
    runs_ = true;
    return {};
  }
  if (awaits_ != nullptr) {
    const auto* habit = std::exchange(translates_, nullptr);
    if (habit == nullptr || habit->translated == nullptr) {
      take_value(word);
      return {};
    }
    DROVER_TRY(const auto translated, habit->translated(word));
    take_value(translated);
    return {};
  }
  if (word.size() > 1 && word.starts_with('-')) return take_flag(word);
  return take_word(word);
}

void Line::take_value(const std::string& value) {
  values_[long_name(*std::exchange(awaits_, nullptr))] = value;
  arguments_.push_back(value);
}

Status Line::take_flag(const std::string& word) {
  takes_more_ = false;
  const auto equals = word.find('=');
  const auto name = word.substr(0, equals);
  const bool is_long = name.starts_with("--");
  // "-detach": a long flag with one dash, as programs in Go have them.
  const auto* flag = is_long ? find(name) : name.size() > 2 ? find("-" + name) : nullptr;
  if (flag == nullptr && !is_long) return take_short_flags(word);
  if (flag == nullptr) {
    const auto value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (const auto* habit = find_flag_habit(path_of(*command_), name); habit != nullptr)
      return take_habit(*habit, name, equals == std::string::npos ? nullptr : &value);
    return Failure(unknown_word(*command_, word));
  }
  arguments_.push_back(is_long ? word : "-" + word);
  if (!takes_value(*flag)) return {};
  takes_more_ = flag->get_items_expected_max() > 1 && flag->get_allow_extra_args();
  if (equals == std::string::npos)
    awaits_ = flag;
  else
    values_[long_name(*flag)] = word.substr(equals + 1);
  return {};
}

/// "-d", "-it", "-p80:80": letters up to the first that takes a value, which is the rest or the next word.
Status Line::take_short_flags(const std::string& word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const auto name = std::string("-") + word[i];
    if (const auto* flag = find(name); flag != nullptr) {
      if (!takes_value(*flag)) continue;
      if (i + 1 == word.size()) awaits_ = flag;
      break;
    }
    const auto rest = word.substr(i + 1);
    if (const auto* habit = i == 1 ? find_flag_habit(path_of(*command_), name) : nullptr; habit != nullptr)
      return take_habit(*habit, name, rest.empty() ? nullptr : &rest);
    return Failure(unknown_word(*command_, i == 1 ? word : name));
  }
  arguments_.push_back(word);
  return {};
}

Status Line::take_habit(const FlagHabit& habit, const std::string& written, const std::string* value) {
  if (habit.gets == Gets::kRefusal) return Failure(no_such_flag(*command_, written, std::string(habit.text)));
  if (habit.gets == Gets::kNothing || habit.gets == Gets::kNoMatter) {
    skips_ = habit.gets == Gets::kNoMatter && value == nullptr;
    if (!habit.text.empty()) notes_.emplace_back(habit.text);
    return {};
  }
  if (habit.gets == Gets::kArgument) return value == nullptr ? Status() : take_word(*value);
  const std::string own(habit.text);
  if (value == nullptr) {
    DROVER_CHECK_OK(take_flag(own));
    if (awaits_ != nullptr) translates_ = &habit;
    return {};
  }
  if (habit.translated == nullptr) return take_flag(own + "=" + *value);
  DROVER_TRY(const auto translated, habit.translated(*value));
  return take_flag(own + "=" + translated);
}

Status Line::take_word(const std::string& word) {
  if (takes_more_) {
    arguments_.push_back(word);
    return {};
  }
  const bool first = words_ == 0;
  const auto* named = first ? subcommand(*command_, word) : nullptr;
  const auto common = common_verb(word);
  if (named == nullptr && first && !common.empty()) named = subcommand(*command_, common);
  if (named != nullptr) {
    arguments_.push_back(named->get_name());
    command_ = named;
    return {};
  }
  const auto* habit = first ? find_verb_habit(joined_path(*command_, word)) : nullptr;
  if (habit == nullptr && first && !common.empty()) habit = find_verb_habit(joined_path(*command_, common));
  if (habit != nullptr && habit->gets == Gets::kNothing) return {};
  if (habit != nullptr && habit->gets == Gets::kRefusal)
    return Failure(no_such_command(*command_, word, std::string(habit->text)));
  if (habit != nullptr) {
    for (std::size_t begin = 0; begin < habit->text.size();) {
      const auto end = std::min(habit->text.find(' ', begin), habit->text.size());
      DROVER_CHECK_OK(take(std::string(habit->text.substr(begin, end - begin))));
      begin = end + 1;
    }
    return {};
  }
  const auto* argument = next_argument();
  if (argument == nullptr) return Failure(unknown_word(*command_, word));
  ++words_;
  if (argument->get_type_name() == kCommandType) {
    runs_ = true;
    to_run_.push_back(word);
  } else {
    arguments_.push_back(word);
  }
  return {};
}

namespace {

/// The command behind which a flag would have been right that stands before it: "drover --json ps".
const CLI::App* command_with(const CLI::App& program, std::span<const std::string> words) {
  const auto& flag = words.front();
  for (const auto& word : words.subspan(1))
    if (const auto* command = subcommand(program, word); command != nullptr)
      return command->get_option_no_throw(flag.substr(0, flag.find('='))) == nullptr ? nullptr : command;
  return nullptr;
}

}  // namespace

Result<Line> read_line(const CLI::App& program, const std::vector<std::string>& words) {
  Line line(program);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto taken = line.take(words[i]);
    if (taken) continue;
    const bool early = line.command().get_parent() == nullptr && words[i].starts_with('-');
    if (const auto* meant = early ? command_with(program, std::span(words).subspan(i)) : nullptr;
        meant != nullptr)
      return Failure(no_such_flag(
          program, words[i], fmt::format("write it behind the command: {} {}", full_name(*meant), words[i])));
    return Failure(taken.error());
  }
  return line;
}

}  // namespace drover::cli
