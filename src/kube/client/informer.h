#pragma once

// Keeps what stands in the API server at hand: lists objects once, then follows their changes on a thread of
// its own. Where the connection breaks it goes on after what it saw last; where the server has forgotten
// that, it lists again and tells the difference. Thread safe.
//
// What is kept is what `read` makes of each object as it comes; its JSON is let go at once, so that a large
// cluster takes no more memory than what is needed of it; `metadata.managedFields` is never there. What
// cannot be read is told of once, and is as if it were not there until it can be.
//
//   Informer<Pod> pods(api, {.selection = {kPods, "", "", "spec.nodeName=gpu-1"}, .read = read_pod});
//   Informer objects(api, {.selection = {kNodes}, .on_change = wake});  // whole, as JSON
//   DROVER_CHECK_OK(pods.wait_until_listed(30s));

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <type_traits>

#include "kube/client/informer_core.h"

namespace drover::kube {

template <typename T = nlohmann::json>
struct Change {
  std::shared_ptr<const T> before;  ///< null of what is new
  std::shared_ptr<const T> now;     ///< null of what is gone
};

template <typename T = nlohmann::json>
struct InformerOptions {
  Selection selection;
  /// On the informer's thread; needed unless T is JSON. Not called again for what a new list has in the
  /// version that is known already.
  std::function<Result<T>(const nlohmann::json& object)> read = {};
  /// On the informer's thread, after objects() has it; also for what the first list has. Changes of one
  /// object come in the order in which they were made, though some of them may be left out; one that was
  /// replaced by another of its name (by the uid) goes before that one comes.
  std::function<void(const Change<T>&)> on_change = {};
  /// Once for each trouble until it is over; it tries again by itself.
  std::function<void(const Error&)> on_trouble = {};
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{30'000};
  std::uint32_t seed = std::random_device()();
};

template <typename T = nlohmann::json>
class Informer {
 public:
  using Pointer = std::shared_ptr<const T>;

  /// Begins at once. `api` must outlive it. Its end takes at most a second, when the callbacks return.
  Informer(Api& api, InformerOptions<T> options) : core_(api, settings_of(std::move(options))) {}

  /// Until objects() is complete for the first time, and on_change has heard of all of it; else kTimeout,
  /// with the last trouble.
  Status wait_until_listed(std::chrono::milliseconds patience) const {
    return core_.wait_until_listed(patience);
  }
  /// By key: "namespace/name". What was there at some time, not long ago.
  std::map<std::string, Pointer> objects() const {
    std::map<std::string, Pointer> objects;
    core_.visit([&](const std::string& key, const InformerCore::Made& made) {
      objects.emplace_hint(objects.end(), key, typed(made));
    });
    return objects;
  }
  /// Null when it is not there.
  Pointer find(const std::string& key) const { return typed(core_.find(key)); }

 private:
  static Pointer typed(const InformerCore::Made& made) { return std::static_pointer_cast<const T>(made); }

  static InformerCore::Settings settings_of(InformerOptions<T> options) {
    InformerCore::Settings settings = {.selection = std::move(options.selection),
                                       .on_trouble = std::move(options.on_trouble),
                                       .first_pause = options.first_pause,
                                       .longest_pause = options.longest_pause,
                                       .seed = options.seed};
    settings.selection.managed_fields = false;
    settings.read = [read = std::move(options.read)](const Object& object) -> Result<InformerCore::Made> {
      if constexpr (std::is_same_v<T, nlohmann::json>)
        if (!read) return object;
      DROVER_TRY(auto made, read(*object));
      return std::make_shared<const T>(std::move(made));
    };
    if (options.on_change)
      settings.on_change = [tell = std::move(options.on_change)](const InformerCore::Made& before,
                                                                 const InformerCore::Made& now) {
        tell({typed(before), typed(now)});
      };
    return settings;
  }

  InformerCore core_;
};

}  // namespace drover::kube
