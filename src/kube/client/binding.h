#pragma once

// Puts a pod on a node: what schedulers do.

#include <map>
#include <string>

#include "kube/client/api.h"

namespace drover::kube {

struct Binding {
  std::string name_space;
  std::string pod;
  std::string uid;                    ///< of the pod that was looked at; another of its name is not bound
  std::string resource_version = {};  ///< "": however it has changed meanwhile
  std::string node;
  std::map<std::string, std::string> annotations = {};  ///< are set on the pod in the same moment
};

/// Fine also when the pod stands there already as it was to be, so it may be called again when nobody knows
/// what became of it. kConflict when it is another pod, is bound elsewhere, has a scheduling gate or is being
/// deleted; kNotFound when there is none.
Status bind(Api& api, const Binding& binding, const std::stop_token& stop = {});

}  // namespace drover::kube
