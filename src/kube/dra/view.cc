#include "kube/dra/view.h"

namespace drover::kube::dra {

std::string hindrance_of(const View& view, const std::string& uuid) {
  const auto found = view.troubles.find(uuid);
  if (found == view.troubles.end()) return "";
  for (const auto& trouble : found->second)
    if (trouble.effect != Effect::kNone) return trouble.message.empty() ? trouble.key : trouble.message;
  return "";
}

}  // namespace drover::kube::dra
