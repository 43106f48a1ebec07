#include "api/wrong_secrets.h"

#include <fmt/format.h>

namespace drover::api {
namespace {

constexpr std::chrono::minutes kBetweenLines{1};
constexpr std::size_t kMostAddresses = 1024;

}  // namespace

std::optional<std::string> WrongSecrets::note(const std::string& address, Time now) {
  const auto is_over = [now](const auto& entry) { return now - entry.second.reported_at >= kBetweenLines; };
  const auto known = tries_.find(address);
  if (known != tries_.end() && !is_over(*known)) {
    ++known->second.unreported;
    return std::nullopt;
  }
  const auto unreported = known == tries_.end() ? 0 : known->second.unreported;
  std::erase_if(tries_, is_over);
  if (tries_.size() < kMostAddresses) tries_[address] = {now, 0};
  if (unreported == 0) return fmt::format("A wrong secret came from {}", address);
  return fmt::format("A wrong secret came from {}, and {} before it that were not told", address, unreported);
}

}  // namespace drover::api
