#pragma once

// The last some thousand events and who listens for more. Owned by the control strand.

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine/api.h"
#include "engine/listeners.h"

namespace drover::engine {

class Feed {
 public:
  /// Numbers start above `first`: time in milliseconds, so that they grow over restarts too.
  explicit Feed(std::uint64_t first) : last_(first) {}

  void add(EventView event);
  std::vector<EventView> after(const Caller& caller, std::uint64_t number, std::size_t most = SIZE_MAX) const;
  std::shared_ptr<void> subscribe(std::function<void()> listener) {
    return listeners_.add(std::move(listener));
  }

 private:
  std::uint64_t last_;
  std::deque<EventView> kept_;
  Listeners<> listeners_;
};

}  // namespace drover::engine
