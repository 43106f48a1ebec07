#pragma once

// How amounts are written in reasons. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "placement/request.h"

namespace drover::placement {

std::string gpus_text(std::int64_t count);                                 ///< "1 GPU", "2 GPUs"
std::string are(std::int64_t count);                                       ///< "is", "are"
std::string cpus_text(std::int64_t milli);                                 ///< "0.5"
std::string milli_text(std::int64_t milli);                                ///< "0.25"
std::string list_text(const std::vector<std::string>&, const char* word);  ///< "a, b and c"
std::string or_text(const std::vector<std::string>&);                      ///< "a", "a or b", "a, b or c"
std::string interconnect_text(const Interconnect&);  ///< "joined by NVLink", "behind one PCIe switch"
/// "of compute capability 3.7, or of 5.2 and 6.0"
std::string capabilities_text(const CapabilitySets&);
std::string link_text(const gpu::Link& link);  ///< "over 2 NVLinks", "across sockets"

}  // namespace drover::placement
