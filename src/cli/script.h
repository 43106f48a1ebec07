#pragma once

// A script that says at its head what it needs, in lines like "#DROVER --gpus 2".

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::cli {

struct Directive {
  int line = 0;  ///< in the script, from 1
  std::vector<std::string> words;
};

struct Script {
  std::vector<std::string> interpreter;  ///< of its first line: "/bin/bash", "-e"
  std::vector<Directive> directives;
  bool has_foreign_directives = false;  ///< lines with #SBATCH or #PBS, and none of Drover's
};

/// Directives stand before the first line that is neither empty nor a comment. kInvalid when it has no
/// interpreter, or a quote is not closed. Pure.
Result<Script> parse_script(std::string_view text);

/// What runs it as it is now, however it is changed until then: a shell is given the text itself, other
/// interpreters the path, which is absolute. Pure.
std::vector<std::string> command_of(const Script& script, const std::string& text, const std::string& path,
                                    const std::vector<std::string>& arguments);

}  // namespace drover::cli
