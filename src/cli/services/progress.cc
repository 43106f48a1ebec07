#include "cli/services/progress.h"

namespace drover::cli {

void Progress::see(const std::string& app, int up, const std::string& failed, Clock::time_point now) {
  auto& seen = apps_[app];
  if (up > seen.most_up) {
    seen.most_up = up;
    seen.failed.clear();
  }
  if (failed.empty() || failed == seen.last) return;
  seen.last = failed;
  if (seen.failed.empty()) seen.since = now;
  seen.failed.insert(failed);
}

std::optional<Progress::Failing> Progress::failing(Clock::time_point now) const {
  for (const auto& [app, seen] : apps_)
    if (seen.failed.size() >= kManyFailures && now - seen.since >= kLongFailing)
      return Failing{app, seen.failed.size(),
                     std::chrono::duration_cast<std::chrono::milliseconds>(now - seen.since)};
  return std::nullopt;
}

}  // namespace drover::cli
