#pragma once

// What is allocated: by id, and by group. Says nothing about what is free. A value.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "placement/decision.h"
#include "placement/request.h"

namespace drover::placement {

struct Allocation {
  Decision decision;
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::string group;
};

/// The GPUs that the containers of one group share (K6).
struct Group {
  std::string node;
  std::vector<Grant> gpus;
  std::vector<DeviceClaim> claims;
  Share share;
  int members = 0;
};

class Ledger {
 public:
  const Allocation* find(const std::string& id) const;
  const Group* group(const std::string& name) const;

  /// Whether its GPUs are newly taken: not when others of its group have them already. The id is new.
  bool add(const std::string& id, const Request& request, const Decision& decision);

  struct Removed {
    Allocation allocation;
    bool frees_gpus = false;  ///< not while others of its group have them
  };
  /// The id is known.
  Removed remove(const std::string& id);

  const std::map<std::string, Allocation>& all() const { return allocations_; }

 private:
  std::map<std::string, Allocation> allocations_;
  std::map<std::string, Group> groups_;
};

}  // namespace drover::placement
