#pragma once

// An API server in memory, for tests: objects with versions, conflicts, dry runs, patches, watches,
// bindings of pods, and selectors by equality. It knows no kinds: whatever is an object may be kept under any
// resource. Thread safe.

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/client/api.h"

namespace drover::kube::testing {

class FakeApi : public Api {
 public:
  Result<nlohmann::json> send(const ApiRequest& request, const std::stop_token& stop = {},
                              const TakeItem& take = {}) override;
  Status watch(const WatchRequest& request, const TakeEvent& take, const std::stop_token& stop) override;
  /// The text that stands at the path, at once and whole, whatever else is asked for.
  Status read(const ApiRequest& request, const TakeText& take, const std::stop_token& stop) override;

  /// The next requests fail with these, in their order; watches do not.
  void fail_next(std::vector<Error> errors);
  /// They fail no more.
  void recover();
  void set_text(const ObjectPath& path, std::string text);
  /// From now on what has finalizers stays when it is deleted, until the last one is taken off, and says how
  /// long it has. Else nobody asks for them.
  void honour_finalizers();
  /// What is_served() finds.
  void serve(const Resource& resource);
  /// All watches end, as the server ends them every few minutes.
  void end_watches();
  /// The server forgets its history: watches end, and none can begin from a version of before.
  void forget();

  /// All requests so far, those that failed too.
  std::vector<ApiRequest> requests() const;
  /// How often a watch was begun.
  int watches() const;

 private:
  struct Past {
    Resource resource;
    nlohmann::json before;
    nlohmann::json now;
    std::uint64_t version;
  };
  using Objects = std::map<std::string, nlohmann::json>;

  Result<nlohmann::json> answer(const ApiRequest& request);
  Result<nlohmann::json> make(const ApiRequest& request, nlohmann::json object);
  Result<nlohmann::json> bind(const ApiRequest& request, nlohmann::json& pod);
  Result<nlohmann::json> change(const ApiRequest& request, nlohmann::json& object);
  nlohmann::json show(const ApiRequest& request);
  void keep(const ApiRequest& request, nlohmann::json& object, nlohmann::json now);
  Objects& objects_of(const Resource& resource);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Objects> objects_;              ///< by resource, by key
  std::map<std::string, nlohmann::json> last_applied_;  ///< by resource, key and manager
  std::map<std::string, nlohmann::json> served_;        ///< by apiVersion, lists of {name}
  std::map<std::string, std::string> texts_;            ///< by url_path()
  std::deque<Past> history_;
  std::deque<Error> failures_;
  std::vector<ApiRequest> requests_;
  std::uint64_t version_ = 100;
  std::uint64_t forgotten_ = 0;  ///< versions up to this one
  bool honours_finalizers_ = false;
  int ended_ = 0;  ///< how often all watches were ended
  int watches_ = 0;
};

}  // namespace drover::kube::testing
