#pragma once

// What people write into files: Marathon's apps and groups, Chronos' jobs, Drover's own tasks and gangs.
// Finds out which of them each part of a file is, and everything that is wrong with it, without a daemon.
// Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/definitions/document.h"
#include "cli/definitions/kind.h"

namespace drover::cli {

struct Definition {
  DefinitionKind kind = DefinitionKind::kApp;
  std::string name;      ///< "/shop/web" of an app or a group; "nightly" of a job, or of a task
  nlohmann::json value;  ///< as it was written, in the words of the API
  std::string file;
  Place place;
  std::size_t warnings = 0;  ///< so many of Definitions::warnings are about it
};

/// A mistake, with what people need to find it.
struct Finding {
  std::string file;
  Mistake mistake;
  std::string line;  ///< of the file, as it stands there
};

struct Definitions {
  std::vector<Definition> all;
  std::vector<Finding> findings;  ///< in the order of the text
  /// What may be meant otherwise, and hinders nothing: fields that nobody knows. In the order of the text.
  std::vector<Finding> warnings;

  /// Takes in those of another file.
  void add(Definitions more);
  /// Makes mistakes of the warnings, those of one file.
  void be_strict();
};

/// Reads one text. `file` names it; one that ends with ".json" has to be JSON. `folder` is where it lies, as
/// an absolute path. `now` is when a schedule without a start begins.
Definitions read_definitions(const std::string& file, const std::string& folder, std::string_view text,
                             TimePoint now);

/// What two definitions have the same name is a mistake of the later one.
void find_doubles(Definitions& definitions);

/// "app.yaml:3:9: /cpus: must be greater than 0", the hint, the line and the caret, each on a line.
std::string render(const Finding& finding);
/// The same with "warning: " behind the place.
std::string render_warning(const Finding& finding);
nlohmann::json to_json(const Finding& finding);

}  // namespace drover::cli
