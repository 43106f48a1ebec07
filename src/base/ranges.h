#pragma once

// Lists of whole numbers as people and the kernel write them: CPUs, device minors, tasks of an array.

#include <string>
#include <vector>

namespace drover {

/// "0-3,7" of ascending numbers; "" for none.
std::string format_ranges(const std::vector<int>& numbers);

}  // namespace drover
