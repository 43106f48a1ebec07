#pragma once

// The removal of a whole tree that may belong to somebody who does not want it removed. Blocks, for minutes
// if there are millions of files.

#include <stop_token>
#include <string>

#include "base/files.h"
#include "base/result.h"

namespace drover {

/// Removes the file or the tree `name` without following links or crossing into other mounts. Absent is fine.
/// Each folder is taken from its owner first, who might hold a descriptor of it and go on to write. Breaks
/// off with kConflict when it is asked to stop, and when something keeps coming all the same.
Status remove_tree(const Directory& parent, const std::string& name, const std::stop_token& stop);

}  // namespace drover
