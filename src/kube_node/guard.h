#pragma once

// Puts the guard's libraries (driver/guard.h) where container runtimes find them: this program may live in a
// container, and go with it while pods run.

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/guard.h"

namespace drover {

/// Copies them into <state>/guard/<digest>, and answers with those. A folder is never changed once it is
/// there: what another version left stays until no pages in any of the folders `shares` need it. None where
/// there are none to copy.
Result<driver::Guard> place_guard(const std::string& state, const std::vector<std::string>& shares);

}  // namespace drover
