#pragma once

// Whose shares of GPUs are watched, and what becomes of those who hold more: they are told, and ended where
// the administrator said so. It is looked elsewhere (share/watch.h); nothing is kept, so after a restart an
// offence that goes on is told again. Owned by the control strand.

#include <functional>
#include <optional>
#include <vector>

#include "control/event.h"
#include "engine/ports.h"
#include "engine/processes.h"

namespace drover::engine {

class ShareWatch {
 public:
  using Port = decltype(Ports::watch_shares);  ///< may be empty: then nobody is watched

  /// `happened` hears of who is to be told, or ended. All of it outlives this.
  ShareWatch(const Loop& loop, const Port& port, const control::State& state, const Processes& processes,
             std::function<void(control::Event)> happened)
      : loop_(loop), port_(port), state_(state), processes_(processes), happened_(std::move(happened)) {}

  /// Whether it may be another matter now who shares GPUs.
  bool concerns(const control::Outcome& outcome) const;
  /// Says who shares GPUs now, when that has changed.
  void inspect();
  void judged(const std::vector<share::Verdict>& verdicts);

 private:
  SharedGpus shared_gpus() const;
  std::string name_of_gpu(const std::string& uuid) const;
  std::string in_words(const share::Verdict& verdict) const;
  void tell_neighbours(const share::Verdict& verdict) const;

  const Loop& loop_;
  const Port& port_;
  const control::State& state_;
  const Processes& processes_;
  std::function<void(control::Event)> happened_;
  SharedGpus told_;
};

}  // namespace drover::engine
