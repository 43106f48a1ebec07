#pragma once

// Which devices of one node a request gets, or why it gets none. Pure; deterministic; thread safe.

#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"

namespace drover::placement::whole {

struct Request {
  int gpus = 0;
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;
};

/// What a machine has.
struct Node {
  gpu::Inventory inventory;
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;
};

/// What of it is taken.
struct Usage {
  std::set<std::string> gpus;  ///< UUIDs
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;
};

struct Decision {
  std::vector<std::string> gpus;  ///< UUIDs, in the order of their indices
};

/// Each reason is one clause in words: "2 GPUs are wanted and 1 of 8 is free".
struct Reasons {
  std::vector<std::string> list;
};

/// The free, fit GPUs with the best interconnect: most NVLinks in sum, then the strongest weakest pair, then
/// the nearest over PCIe, then the lowest indices.
std::variant<Decision, Reasons> place(const Node& node, const Usage& usage, const Request& request);

/// What is missing now; empty when place() would find devices. Cheap: it looks for no optimum.
Reasons shortages(const Node& node, const Usage& usage, const Request& request);

/// An error when the request could not be met even by an empty machine.
Status possible(const Node& node, const Request& request);

}  // namespace drover::placement::whole
