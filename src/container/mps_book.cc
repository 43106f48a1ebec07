#include "container/mps_book.h"

#include <algorithm>
#include <utility>

#include "container/task_folder.h"

namespace drover::container {
namespace {

constexpr mode_t kMpsMode = 0600;

/// "" without the file.
Result<std::string> read_group(const Directory& folder) {
  auto text = folder.read(kMpsFile);
  if (!text && text.error().kind == ErrorKind::kNotFound) return std::string();
  return text;
}

}  // namespace

Result<std::unique_ptr<MpsBook>> MpsBook::open(const std::string& state, std::unique_ptr<MpsMaker> maker) {
  std::unique_ptr<MpsBook> book(new MpsBook(std::move(maker)));
  const auto tasks = Directory::open(state + "/" + kTasksFolder);
  if (!tasks && tasks.error().kind != ErrorKind::kNotFound) return Failure(tasks.error());
  std::set<std::string> groups;
  for (const auto& name :
       tasks ? tasks->list().value_or(std::vector<std::string>()) : std::vector<std::string>()) {
    if (!check_task_id(name)) continue;
    const auto folder = tasks->subdirectory(name);
    if (!folder) continue;  // no task's: whoever looks for tasks says so
    DROVER_TRY(auto group, read_group(*folder));
    if (group.empty()) continue;
    groups.insert(group);
    book->members_[name] = std::move(group);
  }
  DROVER_CHECK_OK(book->maker_->keep_only(groups));
  return book;
}

std::string MpsBook::group_of(const std::string& task_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(task_id);
  return found == members_.end() ? "" : found->second;
}

bool MpsBook::is_alone(const std::string& group) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(members_, [&](const auto& member) { return member.second == group; }) == 1;
}

Result<share::MpsPlaces> MpsBook::join(const Directory& folder, const std::string& task_id,
                                       const std::string& group, const std::vector<std::string>& gpus) {
  const std::lock_guard changing(changing_);
  {
    const std::lock_guard lock(mutex_);
    members_[task_id] = group;
  }
  DROVER_CHECK_OK(folder.write(kMpsFile, group, kMpsMode));
  return maker_->make(group, gpus);
}

Status MpsBook::leave(const Directory& folder, const std::string& task_id) {
  const auto group = group_of(task_id);
  if (group.empty()) return {};
  const std::lock_guard changing(changing_);
  if (is_alone(group)) DROVER_CHECK_OK(maker_->end(group));
  DROVER_CHECK_OK(folder.remove_tree(kMpsFile));
  const std::lock_guard lock(mutex_);
  members_.erase(task_id);
  return {};
}

}  // namespace drover::container
