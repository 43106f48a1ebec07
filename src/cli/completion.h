#pragma once

// Shell completion. The scripts only ask `drover complete` what could stand at the cursor, which is read from
// the tree of commands: nothing lags behind it. Pure.

#include <CLI/App.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace drover::cli {

/// The type name of an argument that is the name of a command of Drover's.
inline constexpr const char* kCommandWords = "VERB";
/// The type name of an option that is a kind of events.
inline constexpr const char* kEventType = "KIND";

/// What could stand at the cursor.
struct Offers {
  std::vector<std::pair<std::string, std::string>> words;  ///< with what each means
  /// What could stand there that has names: "TASK", "RUNNING", "ENDED", "APP", "DEPLOYMENT", "JOB", "QUEUE",
  /// "IMAGE", "MODEL" and "GPU" are the daemon's, "PROFILE" this machine's; "" for nothing.
  std::string kind;
  std::string prefix;  ///< that such a name has in front: "--queue="
  /// What the line says of the daemon: {"--socket", "/x"}.
  std::map<std::string, std::string> values;
};

/// `typed` are the words of a command line without the program's name, up to the cursor; the last is being
/// typed, and may be empty. Words that do not go on as it begins are left out.
Offers offers(const CLI::App& program, const std::vector<std::string>& typed);

/// A word and what it means, as this shell reads them.
std::string offer_line(const std::string& shell, const std::string& word, const std::string& meaning);

/// The script for "bash", "zsh" or "fish".
Result<std::string> completion_script(const std::string& shell);

}  // namespace drover::cli
