#pragma once

// What stands in an API server, and where: paths of objects, and the fields that all of them have. Pure.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace drover::kube {

/// A kind of objects: {"resource.k8s.io", "v1", "resourceslices"}. The core group is "". What has no version
/// stands beside them: {"", "", "version"}. Without a plural it is the group itself, which says what it has.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;

  bool operator==(const Resource&) const = default;
};
/// "resource.k8s.io/v1", "v1": as `apiVersion` has it.
std::string api_version(const Resource& resource);

/// One object; without a name all of a kind in a namespace; without a namespace too, in the whole cluster.
struct ObjectPath {
  Resource resource;
  std::string name_space = {};  ///< "" for what belongs to none, as nodes
  std::string name = {};
  std::string subresource = {};  ///< "status"

  bool operator==(const ObjectPath&) const = default;
};
/// "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b/status", escaped.
std::string url_path(const ObjectPath& path);
/// For messages: "resourceclaims/status 'a/b'", "pods in 'a'", "nodes".
std::string describe(const ObjectPath& path);

/// Which objects of a kind. Selectors are as Kubernetes writes them: "app=x,!y", "spec.nodeName=a".
struct Selection {
  Resource resource;
  std::string name_space = {};  ///< "": of all
  std::string label_selector = {};
  std::string field_selector = {};
  bool managed_fields = true;  ///< whether objects have that, which is a third of many and of use to few
};

/// An object as the server sent it. What stands in a list has neither `kind` nor `apiVersion`.
using Object = std::shared_ptr<const nlohmann::json>;

struct ObjectList {
  std::vector<Object> items;
  std::string resource_version;  ///< a watch from here misses nothing
};

/// The text at a JSON pointer, "" when there is none: text_at(node, "/metadata/name").
std::string text_at(const nlohmann::json& object, std::string_view pointer);
/// "namespace/name", or "name" of what belongs to no namespace; "" when it has no name.
std::string key_of(const nlohmann::json& object);

}  // namespace drover::kube
