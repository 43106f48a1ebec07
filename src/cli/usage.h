#pragma once

// What to tell people who typed something that there is not. Pure.

#include <CLI/App.hpp>
#include <string>

#include "base/result.h"

namespace drover::cli {

/// `argument` is neither a flag nor a subcommand of `command`; the hint names what was probably meant.
Error unknown_word(const CLI::App& command, const std::string& argument);

/// What the parser found wrong, in one sentence.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace drover::cli
