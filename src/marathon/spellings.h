#pragma once

// Older ways to write an app, as clients still send them, brought into today's: `uris`, `ports`, `ipAddress`,
// `container.docker.network` and `container.docker.portMappings`. Pure.

#include <nlohmann/json_fwd.hpp>

#include "marathon/refusal.h"

namespace drover::marathon {

/// The app without its old spellings, and without what only answers have ("tasksRunning", "version" …). What
/// is of a wrong type is left as it is: the reader of today's spelling tells it. Idempotent.
nlohmann::json modern(nlohmann::json app, Mistakes& mistakes);

}  // namespace drover::marathon
