#include "placement/preemption_words.h"

#include <fmt/format.h>

namespace drover::placement {

std::string why_preempted(const std::optional<std::string>& lender, const std::string& job) {
  const auto why = !lender ? std::string("preempted by work of higher priority")
                   : lender->empty()
                       ? std::string("preempted: a queue takes back what it had lent")
                       : fmt::format("preempted: the queue '{}' takes back what it had lent", *lender);
  return job.empty() ? why : fmt::format("{}, for '{}'", why, job);
}

}  // namespace drover::placement
