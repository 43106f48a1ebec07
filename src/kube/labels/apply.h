#pragma once

// Brings labels to their node: through the API server, or through node-feature-discovery. Both replace all
// that was written before, so a label that is not among them any more goes away; annotations have no way but
// the first. Block.

#include <string>

#include "kube/client/api.h"
#include "kube/labels/node_labels.h"

namespace drover::kube {

inline constexpr const char* kLabelsManager = "drover-labels";

/// By server-side apply under a field manager of our own: what others wrote stays as it is. Needs the right
/// to patch nodes.
Status apply_labels(Api& api, const std::string& node, const Labels& labels, const Labels& annotations = {});

/// For node-feature-discovery's local source, which reads such files in
/// /etc/kubernetes/node-feature-discovery/features.d/: a line "name=value" for each. Replaced in one step.
Status write_feature_file(const std::string& path, const Labels& labels);

}  // namespace drover::kube
