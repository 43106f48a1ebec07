#pragma once

// Room on the disk of the state folder: whether there is any, and how it is made when there is too little, by
// removing what nobody uses, and then by forgetting ended tasks. Owned by the control strand; the probes at
// what tasks take up are made on the pool.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "engine/ended_sizes.h"
#include "engine/ports.h"
#include "engine/processes.h"

namespace drover::engine {

class DiskRoom {
 public:
  /// Is to have an ended task forgotten, if it can, and told why.
  using Forget = std::function<void(const std::string& id, const std::string& words)>;

  /// All of it outlives this and what it has on the pool.
  DiskRoom(const Ports& ports, const control::State& state, const Processes& processes, EndedSizes& ended,
           Forget forget)
      : ports_(ports), state_(state), processes_(processes), ended_(ended), forget_(std::move(forget)) {}

  /// What is left is kept for what ends tasks.
  bool is_full() const;
  Error full() const;
  /// What people should know: it is full, or there is less room than there should be.
  std::optional<Error> problem() const;
  /// Makes some when there is too little, unless that was done lately or is being done.
  void make();

 private:
  bool is_short() const;
  /// To free, so that there is enough for a while.
  std::uint64_t missing() const;
  void found(const std::map<std::string, Result<std::uint64_t>>& found);

  const Ports& ports_;
  const control::State& state_;
  const Processes& processes_;
  EndedSizes& ended_;
  const Forget forget_;
  bool probing_ = false;
  TimePoint next_{};  ///< not before
};

}  // namespace drover::engine
