#include "image/late_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "image/proofs.h"

namespace drover::image {

LateSync::LateSync(Directory notes, Directory own, std::function<void(const std::string&)> lost,
                   std::chrono::milliseconds calm)
    : notes_(std::move(notes)),
      own_(std::move(own)),
      lost_(std::move(lost)),
      calm_(calm),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

LateSync::~LateSync() = default;

Result<std::unique_ptr<LateSync>> LateSync::open(const Directory& notes,
                                                 std::function<void(const std::string&)> lost,
                                                 std::chrono::milliseconds calm) {
  DROVER_TRY(auto all, Directory::open(notes.path()));
  DROVER_TRY(const auto boot, boot_id());
  DROVER_TRY(auto own, all.make_subdirectory(boot, 0700));
  DROVER_CHECK_OK(all.sync());
  return std::unique_ptr<LateSync>(new LateSync(std::move(all), std::move(own), std::move(lost), calm));
}

Result<std::vector<std::string>> LateSync::doubtful() const {
  DROVER_TRY(const auto boot, boot_id());
  DROVER_TRY(const auto boots, notes_.list());
  std::vector<std::string> layers;
  for (const auto& other : boots) {
    if (other == boot) continue;
    DROVER_TRY(const auto folder, notes_.subdirectory(other));
    DROVER_TRY(auto names, folder.list());
    layers.insert(layers.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
  }
  return layers;
}

Status LateSync::clear_doubtful() const {
  DROVER_TRY(const auto boot, boot_id());
  DROVER_TRY(const auto boots, notes_.list());
  for (const auto& other : boots)
    if (other != boot) DROVER_CHECK_OK(notes_.remove_tree(other));
  return {};
}

Status LateSync::announce(const std::string& layer) const {
  DROVER_CHECK_OK(own_.open_file(layer, O_WRONLY | O_CREAT, 0600).map([](auto&&) {}));
  return own_.sync();
}

void LateSync::withdraw(const std::string& layer) const {
  (void)own_.remove_tree(layer);
}

void LateSync::add(const std::string& layer) {
  {
    const std::lock_guard lock(mutex_);
    pending_.insert(layer);
  }
  changed_.notify_all();
}

void LateSync::forget(const std::string& layer) {
  // Its note stays: that it is away is not on the disk either.
  const std::lock_guard lock(mutex_);
  pending_.erase(layer);
  syncing_.erase(layer);
}

void LateSync::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !pending_.empty(); })) {
    changed_.wait_for(lock, stop, calm_, [] { return false; });
    sync_pending(lock);
  }
}

void LateSync::sync_pending(std::unique_lock<std::mutex>& lock) {
  syncing_ = std::exchange(pending_, {});
  lock.unlock();
  const bool synced = ::syncfs(own_.fd()) == 0;
  lock.lock();
  for (const auto& layer : std::exchange(syncing_, {}))
    if (synced)
      withdraw(layer);
    else
      lost_(layer);
}

}  // namespace drover::image
