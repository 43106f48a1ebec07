#pragma once

// Shell completion, generated from the tree of commands, so that it never lags behind it. Pure.

#include <CLI/App.hpp>
#include <string>

#include "base/result.h"

namespace drover::cli {

/// The script for "bash", "zsh" or "fish".
Result<std::string> completion_script(const CLI::App& app, const std::string& shell);

}  // namespace drover::cli
