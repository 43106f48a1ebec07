#include "api/answer_shares.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "base/user_limits.h"

namespace drover::api {
namespace {

constexpr std::chrono::milliseconds kUntilRead{100};

}  // namespace

void AnswerShares::age(Share& share, Clock::time_point now) const {
  const std::chrono::duration<double> passed = now - share.at;
  share.recent = std::max(0.0, share.recent - passed.count() * static_cast<double>(share_));
  share.at = now;
}

AnswerShares::Clock::duration AnswerShares::wait(uid_t user, Clock::time_point now) {
  if (user == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto found = shares_.find(user);
  if (found == shares_.end()) return {};
  auto& share = found->second;
  age(share, now);
  if (share.unsent > share_) return kUntilRead;
  const auto over = share.recent - static_cast<double>(share_);
  if (over > 0) {
    const std::chrono::duration<double> rest(over / static_cast<double>(share_));
    return std::chrono::ceil<Clock::duration>(rest);
  }
  if (share.unsent == 0 && share.recent == 0) shares_.erase(found);
  return {};
}

std::shared_ptr<void> AnswerShares::begin(uid_t user, std::uint64_t bytes, Clock::time_point now) {
  if (bytes == 0 || user == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& share = shares_[user];
  age(share, now);
  share.unsent += bytes;
  share.recent += static_cast<double>(bytes);
  return {nullptr, [this, user, bytes](void*) {
            const std::lock_guard end(mutex_);
            shares_.at(user).unsent -= bytes;
          }};
}

std::uint64_t AnswerShares::unsent(uid_t user) const {
  const std::lock_guard lock(mutex_);
  const auto found = shares_.find(user);
  return found == shares_.end() ? 0 : found->second.unsent;
}

Error AnswerShares::refusal(const User& user) const {
  return {ErrorKind::kUnavailable,
          fmt::format("'{}' has too many answers, of which {} are not read", user.name,
                      format_bytes(unsent(user.uid))),
          "read them, or close their connections; " + allow_more(&UserLimits::answer_bytes), ""};
}

}  // namespace drover::api
