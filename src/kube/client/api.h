#pragma once

// The API server of a cluster, as a seam: ApiClient is the real one, testing/fake_api.h one in memory.
// Thread safe. All calls block, and none without end.
//
// Errors are one sentence that says what was tried and what the server said. By kind: kNotFound;
// kConflict (it exists already, or is not as the caller has seen it); kPermissionDenied (the hint names the
// right that is missing); kUnauthenticated; kInvalid; kUnsupported; kUnavailable and kTimeout, after all
// attempts.
//
//   DROVER_TRY(const auto node, api.get({kNodes, "", "gpu-1"}));
//   DROVER_TRY(const auto made, api.create({kSlices}, slice));

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/client/object.h"

namespace drover::kube {

inline const Resource kNodes = {"", "v1", "nodes"};
inline const Resource kPods = {"", "v1", "pods"};

/// One request. `verb` is one of RBAC's: get, list, create, update, patch, delete.
struct ApiRequest {
  std::string verb;
  ObjectPath path;
  std::map<std::string, std::string> query = {};
  std::string content_type = {};
  std::string body = {};  ///< "": none
  /// Of a create: the server does it once however often it is asked, by its name or a precondition, and the
  /// caller knows what kConflict may mean then. Others are not sent again once the server may have them.
  bool repeatable = false;
  bool managed_fields = true;             ///< of what is answered
  bool answer = true;                     ///< false: the answer is not looked at, and {}
  std::chrono::milliseconds patience{0};  ///< for all attempts together; 0: the client's own
};

struct WatchRequest {
  Selection selection;
  std::string resource_version;  ///< changes after this one
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };
struct WatchEvent {
  WatchEventType type;
  Object object;  ///< a bookmark's has only its resourceVersion
};

/// May take what it wants out of the item.
using TakeItem = std::function<void(nlohmann::json& item)>;

struct ListListener {
  std::function<void()> begin;  ///< also when what was taken so far is void, and comes again
  TakeItem take;
};

/// RFC 7386; Kubernetes' own, which knows the keys of lists such as a node's conditions.
enum class PatchType { kMerge, kStrategic };

class Api {
 public:
  virtual ~Api() = default;

  /// What the server answers, an object. The verbs below say it shorter. With `take` the items of a list are
  /// handed to it one by one, instead of being kept, until one is wrong.
  virtual Result<nlohmann::json> send(const ApiRequest& request, const std::stop_token& stop = {},
                                      const TakeItem& take = {}) = 0;
  /// Hands over events until the server ends it, which it does every few minutes, or `take` fails. Stops
  /// within a second. kNotFound when the resource version is too old: list again.
  using TakeEvent = std::function<Status(const WatchEvent&)>;
  virtual Status watch(const WatchRequest& request, const TakeEvent& take, const std::stop_token& stop) = 0;
  /// Hands over what is no object but a text, as it comes: what a container has written. Until the server
  /// ends it, which may be never, or `take` fails. Asked once. Stops within a second.
  using TakeText = std::function<Status(std::string_view piece)>;
  virtual Status read(const ApiRequest& request, const TakeText& take, const std::stop_token& stop);

  Result<nlohmann::json> get(const ObjectPath& path);
  /// `collection` has no name: it stands in the object. What was written comes back without managedFields,
  /// as from replace() and patch(); to write that again leaves them as they are.
  Result<nlohmann::json> create(const ObjectPath& collection, const nlohmann::json& object);
  /// kConflict when the object has another resourceVersion by now than `object`.
  Result<nlohmann::json> replace(const ObjectPath& path, const nlohmann::json& object);
  Result<nlohmann::json> patch(const ObjectPath& path, PatchType type, const nlohmann::json& patch);
  /// As replace() and patch(), for those who do not want to see what became of it.
  Status write(const ObjectPath& path, const nlohmann::json& object);
  Status write(const ObjectPath& path, PatchType type, const nlohmann::json& patch);
  /// Server-side apply: makes the object, or makes it have these fields and no others of this manager's.
  /// `object` needs `apiVersion`, `kind` and its name. Takes fields over from other managers.
  Result<nlohmann::json> apply(const ObjectPath& path, const nlohmann::json& object,
                               const std::string& field_manager);
  /// Fine when it is not there. With a `uid` only that one: kConflict when another has its name.
  Status remove(const ObjectPath& path, const std::string& uid = "");
  /// All pages.
  Result<ObjectList> list(const Selection& selection, const std::stop_token& stop = {});
  /// The same without a tree of more than one object at a time. The answer is the list's version: a watch
  /// from there misses nothing.
  Result<std::string> list_each(const Selection& selection, const ListListener& listener,
                                const std::stop_token& stop = {});
};

}  // namespace drover::kube
