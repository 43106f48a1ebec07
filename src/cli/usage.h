#pragma once

// What to tell people who typed something that there is not. Pure.

#include <CLI/App.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::cli {

/// `argument` is neither a flag nor a subcommand of `command`; the hint names what was probably meant.
Error unknown_word(const CLI::App& command, const std::string& argument);

/// The same, of a word that is known to be meant as what the hint says.
Error no_such_flag(const CLI::App& command, const std::string& flag, std::string hint);
Error no_such_command(const CLI::App& command, const std::string& word, std::string hint);

/// For flags and arguments: one of these words. The type name says which there are, for help and completion.
CLI::Validator one_of(const std::vector<std::string>& words);
CLI::Validator between(int least, int most);
/// A flag that takes a time: "90s".
void add_duration(CLI::App& command, const std::string& name, std::chrono::milliseconds& duration,
                  const std::string& help);

/// What the parser found wrong, in one sentence of Drover's.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace drover::cli
