#pragma once

// What an Informer does whatever its objects are: informer.h gives them their type.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "base/pause.h"
#include "kube/client/api.h"

namespace drover::kube {

class InformerCore {
 public:
  /// What was made of an object; null: nothing is there.
  using Made = std::shared_ptr<const void>;
  struct Settings {
    Selection selection;
    std::function<Result<Made>(const Object&)> read;
    std::function<void(const Made& before, const Made& now)> on_change;
    std::function<void(const Error&)> on_trouble;
    std::chrono::milliseconds first_pause;
    std::chrono::milliseconds longest_pause;
    std::uint32_t seed;
  };

  InformerCore(Api& api, Settings settings);
  InformerCore(const InformerCore&) = delete;
  InformerCore& operator=(const InformerCore&) = delete;
  ~InformerCore();

  Status wait_until_listed(std::chrono::milliseconds patience) const;
  void visit(const std::function<void(const std::string& key, const Made&)>& visit) const;
  Made find(const std::string& key) const;

 private:
  struct Entry {
    Made made;  ///< null of what cannot be read
    std::string uid;
    std::string version;
  };
  using Entries = std::map<std::string, Entry>;

  void run(const std::stop_token& stop);
  /// One list, where it is needed, and one watch; whether the watch was of use.
  Result<bool> follow(const std::stop_token& stop);
  Status list(const std::stop_token& stop);
  void take(const WatchEvent& event);
  Entry entry_of(const std::string& key, const Object& object);
  Made read(const std::string& key, const Object& object);
  void notify(const Entry& before, const Entry& now) const;
  void note(const Status& outcome);

  Api& api_;
  const Settings settings_;
  // Of the thread alone:
  std::string version_;                            ///< seen last; "": list again
  std::map<std::string, std::string> unreadable_;  ///< what was told of it, by key
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Entries entries_;  ///< the thread alone changes it
  bool listed_ = false;
  std::optional<Error> trouble_;
  std::jthread thread_;
};

}  // namespace drover::kube
