#pragma once

// Where the caller stands, and what of it goes along with a task that has no image: such a task runs on the
// files that he sees, so it starts in his folder, and finds programs and speaks as he does. With an image all
// that is the image's.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "cli/client.h"
#include "cli/task_flags.h"

namespace drover::cli {

struct Whereabouts {
  /// Why paths mean something else to the daemon than here; "" where they mean the same.
  std::string elsewhere;
  std::string folder;  ///< where he stands; "" when it cannot be told
  /// Why the task's user could not start there; "" when he could.
  std::string closed;
  bool same_user = true;  ///< the task runs as the caller himself
  std::map<std::string, std::string> environment;
};

/// What of an environment goes along: how programs are found (PATH, LD_LIBRARY_PATH, PYTHONPATH, VIRTUAL_ENV,
/// CONDA_PREFIX, CONDA_DEFAULT_ENV), and language and time zone (LANG, LANGUAGE, LC_*, TZ). Nothing else, so
/// no secret goes by accident. Pure.
std::map<std::string, std::string> passed_on(const std::map<std::string, std::string>& environment);

/// A request, and what to tell about it; "" for nothing.
struct Placed {
  nlohmann::json body;
  std::string note;
};

/// Puts into the request of a task what it has of whoever starts it. What the request says goes first. With
/// an image, or where the daemon sees other files, nothing goes along. To another user goes nothing of the
/// environment. Pure.
Result<Placed> start_at(nlohmann::json body, const Whereabouts& caller);

/// `relative` from there, without a '/' at its end.
std::string path_from(const std::string& folder, const std::string& relative);

/// Of this process. Asks the daemon which files it sees. Fails when the daemon cannot be asked.
Result<Whereabouts> whereabouts(const Client& client, const Endpoint& endpoint, const TaskFlags& flags);

/// Refuses, where the daemon sees the same files, a volume that is not there, and without an image a folder
/// to start in that is none. Work that starts later may find them.
Status find_here(const nlohmann::json& body, const Whereabouts& caller);

/// All of these together, for `body` made of `flags`. Tells on standard error where a task does not start
/// where the caller stands.
Result<nlohmann::json> start_here(const Client& client, const Endpoint& endpoint, const TaskFlags& flags,
                                  nlohmann::json body);

}  // namespace drover::cli
