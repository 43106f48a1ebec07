#pragma once

// The driver's seams over a real API server. Thread safe as the Api is.

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/client/api.h"
#include "kube/dra/preparer.h"
#include "kube/dra/publisher.h"

namespace drover::kube::dra {

/// The newest version of resource.k8s.io that the server has and we know. kUnsupported for servers
/// before 1.32, and where Dynamic Resource Allocation is switched off.
Result<ApiVersion> served_version(Api& api, const std::string& node);

std::shared_ptr<ClaimSource> claims_at(std::shared_ptr<Api> api, ApiVersion version);
std::shared_ptr<SliceApi> slices_at(std::shared_ptr<Api> api, ApiVersion version, const std::string& driver,
                                    const std::string& node);

}  // namespace drover::kube::dra
