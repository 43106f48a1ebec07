#pragma once

// What people write who come from Docker, Slurm, Kubernetes or Nomad, and what it gets here. All of it is
// data: a spelling that means the same is taken as Drover's own; one that does not is refused with what to
// write instead. Pure; thread safe.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::cli {

enum class Gets {
  kSame,      ///< it is read as `text`
  kArgument,  ///< its value is what it stands before: "-f FILE" is FILE
  kNothing,   ///< it is accepted and changes nothing; `text`, if any, is told
  kNoMatter,  ///< the same, with a value
  kRefusal,   ///< it is refused; `text` is the hint
};

/// A flag that Drover spells in another way.
struct FlagHabit {
  std::string_view commands;  ///< that it is written after: "run plan"; "" for the program itself
  std::string_view flag;
  Gets gets = Gets::kRefusal;
  std::string_view text;
  /// For kSame: its value in Drover's words, where those differ.
  Result<std::string> (*translated)(std::string_view value) = nullptr;
};

/// A verb that Drover spells in another way, behind the noun that it belongs to: "ls", "gpus ls".
struct VerbHabit {
  std::string_view words;
  Gets gets = Gets::kRefusal;
  std::string_view text;  ///< for kSame: the words of Drover's command line; for kNothing: ""
};

std::span<const FlagHabit> flag_habits();
std::span<const VerbHabit> verb_habits();

/// `command` without the program's name: "image pull"; nullptr when nobody has this habit.
const FlagHabit* find_flag_habit(std::string_view command, std::string_view flag);
const VerbHabit* find_verb_habit(std::string_view words);

/// Of the verbs that every noun has, the one that is meant: "list" and "ls" are "ls"; "" for other words.
std::string_view common_verb(std::string_view word);

/// "60", "1:30:00", "2-12", "1-06:30": times as Slurm has them, in minutes when there is one number alone, as
/// "1h30m". Refuses what is none of them.
Result<std::string> duration_of_slurm_time(std::string_view text);

/// "gpu:2", "gpu:a100:2", "a100:2", "2": GPUs as Slurm has them, as "2" or "2xa100".
Result<std::string> gpus_of_slurm_resource(std::string_view text);

/// Whether a word that is no command looks like the name of an image: "ubuntu", "nvcr.io/nvidia/cuda:12.4".
bool looks_like_image(std::string_view word);

}  // namespace drover::cli
