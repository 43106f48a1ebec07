#include "control/image_fit.h"

namespace drover::control {

std::optional<ImageName> image_name(const workload::Task& task) {
  if (!task.image) return std::nullopt;
  return ImageName{task.owner, *task.image};
}

const ImageFit* find_fit(const ImageFits& fits, const workload::Task& task) {
  if (fits.empty()) return nullptr;
  const auto name = image_name(task);
  const auto found = name ? fits.find(*name) : fits.end();
  return found == fits.end() ? nullptr : &found->second;
}

std::optional<std::string> refusal(const ImageFit& fit, const workload::Task& task) {
  const bool gpus = task.resources.gpu_count() > 0;
  if (gpus && !fit.sets.empty()) return std::nullopt;
  const auto& why = gpus ? fit.with_gpus : fit.without_gpus;
  return why.empty() ? std::nullopt : std::optional(why);
}

void narrow(placement::Request& request, const workload::Task& task, const ImageFits& fits) {
  const auto* fit = find_fit(fits, task);
  if (fit == nullptr || fit->sets.empty() || request.gpu_count() == 0) return;
  request.capabilities = {fit->sets, "its image has no variant for others"};
}

}  // namespace drover::control
