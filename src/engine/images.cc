#include "engine/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace drover::engine {

Images::Work::Report Images::Work::report() {
  const std::lock_guard lock(news_->mutex);
  return std::exchange(news_->report, {});
}

Images::~Images() {
  for (auto& one : running_) one->stop.request_stop();
}

void Images::drop_ended() {
  std::erase_if(running_, [](const auto& one) {
    const std::lock_guard own(one->news->mutex);
    return one->news->ended;
  });
}

std::size_t Images::running() {
  const std::lock_guard lock(mutex_);
  drop_ended();
  return running_.size();
}

Result<std::shared_ptr<Images::Work>> Images::start(const User& user, Doing doing) {
  const std::lock_guard lock(mutex_);
  drop_ended();
  const auto own = static_cast<std::size_t>(
      std::ranges::count(running_, user.uid, [](const auto& one) { return one->user; }));
  if (user.uid != 0 && own >= most_of_user_)
    return fail(ErrorKind::kExhausted, fmt::format("'{}' pulls or loads {} images already", user.name, own),
                "wait for one of them; " + allow_more(&UserLimits::pulls));
  if (running_.size() >= kMostAtOnce)
    return fail(ErrorKind::kExhausted, "Too many images are being pulled or loaded", "try again in a moment");
  auto work = std::make_shared<Work>();
  auto running = std::make_unique<Running>();
  running->user = user.uid;
  running->news = work->news_;
  running->stop = work->stop_;
  running->thread =
      std::jthread([doing = std::move(doing), news = work->news_, stop = work->stop_.get_token()] {
        const auto listener = [&](const PullProgress& progress) {
          const std::lock_guard own(news->mutex);
          news->report.progress = progress;
        };
        auto outcome = doing(listener, stop);
        const std::lock_guard own(news->mutex);
        news->report.outcome = std::move(outcome);
        news->ended = true;
      });
  running_.push_back(std::move(running));
  return work;
}

Result<std::shared_ptr<Images::Work>> Images::pull(const std::string& name, const User& user,
                                                   const gpu::MachineFacts& machine) {
  return start(user, [this, name, user, machine](const auto& listener, const auto& stop) {
    return pull_whole(name, user, machine, listener, stop);
  });
}

Result<NamedImage> Images::pull_whole(const std::string& name, const User& user,
                                      const gpu::MachineFacts& machine, const image::PullListener& listener,
                                      const std::stop_token& stop) {
  DROVER_TRY(auto image, store_.pull(name, user, listener, stop));
  if (!image.has_variants()) return image;
  DROVER_TRY(auto variants, store_.variants(name, user));
  const auto view = explain_variants(std::move(variants), machine, "");
  DROVER_TRY(const auto wanted, taken(view));
  for (const auto index : wanted)
    DROVER_CHECK_OK(store_.pull(view.variants[index].reference, user, listener, stop));
  return image;
}

Result<std::shared_ptr<Images::Work>> Images::load(const std::string& reference, const std::string& name,
                                                   const User& user) {
  return start(user, [this, reference, name, user](const auto& listener, const auto& stop) {
    return store_.load(reference, name, user, listener, stop);
  });
}

}  // namespace drover::engine
