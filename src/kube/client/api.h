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

/// RFC 7386; Kubernetes' own, which knows the keys of lists such as a node's conditions.
enum class PatchType { kMerge, kStrategic };

class Api {
 public:
  virtual ~Api() = default;

  /// What the server answers, an object. The verbs below say it shorter.
  virtual Result<nlohmann::json> send(const ApiRequest& request, const std::stop_token& stop = {}) = 0;
  /// Hands over events until the server ends it, which it does every few minutes, or `take` fails. Stops
  /// within a second. kNotFound when the resource version is too old: list again.
  using TakeEvent = std::function<Status(const WatchEvent&)>;
  virtual Status watch(const WatchRequest& request, const TakeEvent& take, const std::stop_token& stop) = 0;

  Result<nlohmann::json> get(const ObjectPath& path);
  /// `collection` has no name: it stands in the object.
  Result<nlohmann::json> create(const ObjectPath& collection, const nlohmann::json& object);
  /// kConflict when the object has another resourceVersion by now than `object`.
  Result<nlohmann::json> replace(const ObjectPath& path, const nlohmann::json& object);
  Result<nlohmann::json> patch(const ObjectPath& path, PatchType type, const nlohmann::json& patch);
  /// Server-side apply: makes the object, or makes it have these fields and no others of this manager's.
  /// `object` needs `apiVersion`, `kind` and its name. Takes fields over from other managers.
  Result<nlohmann::json> apply(const ObjectPath& path, const nlohmann::json& object,
                               const std::string& field_manager);
  /// Fine when it is not there. With a `uid` only that one: kConflict when another has its name.
  Status remove(const ObjectPath& path, const std::string& uid = "");
  /// All pages. Of many, it may be a little later than the first page says.
  Result<ObjectList> list(const Selection& selection, const std::stop_token& stop = {});
};

}  // namespace drover::kube
