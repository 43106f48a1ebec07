#pragma once

// How much of a disk the files of a task take up. Whoever owns them chooses how many there are, how deep they
// lie, and whether they still have a name. Blocks; thread safe.

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace drover {

/// Bytes on the disk of all that lies in the folder and below it, on its own file system: of a file with
/// several names its part for each of them here, and for each entry at least what its name costs. What
/// changes meanwhile may be missed. kExhausted when it is deeper than can be seen.
Result<std::uint64_t> disk_space_below(const Directory& folder);

/// Of the files on this file system that these processes have open and that have no name any more.
std::uint64_t disk_space_of_nameless(const std::vector<pid_t>& processes, dev_t file_system);

}  // namespace drover
