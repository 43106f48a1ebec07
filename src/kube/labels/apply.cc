#include "kube/labels/apply.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"

namespace drover::kube {

Status apply_labels(Api& api, const std::string& node, const Labels& labels, const Labels& annotations) {
  const auto applied =
      api.apply({kNodes, "", node},
                {{"apiVersion", "v1"},
                 {"kind", "Node"},
                 {"metadata", {{"name", node}, {"labels", labels}, {"annotations", annotations}}}},
                kLabelsManager);
  if (!applied) return Failure(context(applied.error(), "the node's labels"));
  return {};
}

Status write_feature_file(const std::string& path, const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += fmt::format("{}={}\n", name, value);
  return write_file(path, text);
}

}  // namespace drover::kube
