#pragma once

// Which journal belongs to which state folder. Each knows the other by a random id, and both count the
// daemon's starts: so a journal of another folder, or of another machine, is told from the folder's own, and
// an old one from the last. An administrator's way back to a backup is restore().

#include <string>
#include <vector>

#include "base/result.h"
#include "store/journal.h"

namespace drover::store {

struct Joined {
  std::string id;                 ///< of the journal and its folder, 32 hex digits: kept as long as they are
  std::vector<std::string> news;  ///< what people should know, a sentence each
};
/// At a start, before anything is done with what the journal says. kConflict when it is another folder's.
Result<Joined> join(Journal& journal, const std::string& folder);

/// Makes a backup the journal of a state folder that no daemon uses. The journal that is there is kept beside
/// it under another name, which is the result ("" when there was none). kConflict when a daemon uses the
/// folder, or, unless `force`, when the backup is of another folder.
Result<std::string> restore(const std::string& folder, const std::string& backup, bool force);

/// The journal of a state folder.
std::string journal_file(const std::string& folder);

}  // namespace drover::store
