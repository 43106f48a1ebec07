#pragma once

// A command line before the parser has it: word by word it is known which command is named, whether a word is
// a flag's value, and where the command to run begins. The spellings of other programs (habits.h) become
// Drover's own. Pure.

#include <CLI/App.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/habits.h"

namespace drover::cli {

/// The type name of the argument that is a command to run: it takes all words from its first on, whatever
/// they look like.
inline constexpr const char* kCommandType = "COMMAND";

/// "drover files ls"
std::string full_name(const CLI::App& command);
/// "files ls"; "" for the program itself.
std::string path_of(const CLI::App& command);

/// Whether this flag is followed by a value.
bool takes_value(const CLI::Option& flag);

/// Reads words one after the other. The tree must outlive it.
class Line {
 public:
  explicit Line(const CLI::App& program) : command_(&program) {}

  /// Fails at what nobody knows, and at what is spelled otherwise here; the word then counts as not written.
  Status take(const std::string& word);

  /// Where it has come to: the innermost command that was named.
  const CLI::App& command() const { return *command_; }
  /// The flag whose value comes next; nullptr when none is waited for.
  const CLI::Option* awaits() const { return awaits_; }
  /// The argument that the next plain word is; nullptr when there is none.
  const CLI::Option* next_argument() const;
  /// Whether all further words are those of the command to run.
  bool in_command_to_run() const { return runs_; }

  const std::vector<std::string>& arguments() const { return arguments_; }  ///< for the parser
  const std::vector<std::string>& command_to_run() const { return to_run_; }
  const std::vector<std::string>& notes() const { return notes_; }  ///< what people are to be told
  /// The last value of each flag that has one, by its long name: {"--socket", "/x"}.
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  Status take_flag(const std::string& word);
  Status take_short_flags(const std::string& word);
  Status take_habit(const FlagHabit& habit, const std::string& written, const std::string* value);
  Status take_word(const std::string& word);
  void take_value(const std::string& value);
  const CLI::Option* find(const std::string& name) const;

  const CLI::App* command_;
  const CLI::Option* awaits_ = nullptr;
  bool takes_more_ = false;                ///< plain words are further values of the last flag
  bool skips_ = false;                     ///< the next word is a value that is no matter
  const FlagHabit* translates_ = nullptr;  ///< how the awaited value is put in Drover's words
  std::size_t words_ = 0;                  ///< plain ones behind the command's name
  bool runs_ = false;
  std::vector<std::string> arguments_;
  std::vector<std::string> to_run_;
  std::vector<std::string> notes_;
  std::map<std::string, std::string> values_;
};

/// All words of a command line, without the program's name.
Result<Line> read_line(const CLI::App& program, const std::vector<std::string>& words);

}  // namespace drover::cli
