#pragma once

// What is known of images that stand for several: who looks at them, and when. Owned by the control strand;
// images are looked at on the pools, with the rights of whoever named them.

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "control/event.h"
#include "control/state.h"
#include "engine/api.h"
#include "engine/ports.h"

namespace drover::engine {

/// Whether its image comes from a registry as far as its name tells; a list may name what registries have.
bool may_be_pulled(const std::string& image);

class ImageInspector {
 public:
  /// With the user by whose rights each is looked at; nullopt: its owner, who is looked up first.
  using Wanted = std::map<control::ImageName, std::optional<User>>;

  /// `known` hears what is new. All of it outlives this and what it has on the pools.
  ImageInspector(const Ports& ports, const control::State& state,
                 std::function<void(control::event::ImagesKnown)> known)
      : ports_(ports), state_(state), known_(std::move(known)) {}

  /// `done` is called in any case, and may be empty.
  void inspect(Wanted images, std::function<void()> done = {});
  /// Each by itself: a file system that does not answer holds up its own images alone.
  void inspect_each(const Wanted& images);
  static void add(Wanted& images, const workload::Task& task);
  /// Of all work that may be started, and all that is known.
  Wanted of_work() const;
  /// Lets the tasks of these wait until they were looked at. Nothing when nobody looks.
  control::Outcome hold(const Wanted& images) const;

  /// Actions::image_variants().
  void variants(const Caller& caller, const std::string& image, const std::string& profile,
                std::function<void(Result<VariantsView>)> done);
  /// Ends what asks registries, so that the pools can be joined.
  void stop() { asking_.request_stop(); }

 private:
  const Ports& ports_;
  const control::State& state_;
  std::function<void(control::event::ImagesKnown)> known_;
  std::stop_source asking_;
};

}  // namespace drover::engine
