#include "container/remover.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "base/remove_tree.h"

namespace drover::container {
namespace {

// Each entry is a name, and a daemon that cannot keep up is told of no more.
constexpr FairPool::Limits kRemovals{.threads = 8, .at_once = 1, .waiting = 1u << 20};

}  // namespace

Remover::Remover(Directory folder, std::function<void(const std::string&)> log)
    : folder_(std::move(folder)), log_(std::move(log)), pool_(kRemovals) {}

Result<std::unique_ptr<Remover>> Remover::start(const std::string& folder,
                                                std::function<void(const std::string&)> log) {
  DROVER_TRY(auto opened, Directory::create(folder, 0700));
  DROVER_TRY(const auto left, opened.list());
  std::unique_ptr<Remover> remover(new Remover(std::move(opened), std::move(log)));
  for (const auto& name : left) remover->remove_later(name, 0);
  return remover;
}

Remover::~Remover() {
  stop_.request_stop();
}

Status Remover::remove(const Directory& parent, const std::string& name, uid_t owner) {
  while (true) {
    const auto place = fmt::format("{}.{}", name, moved_++);
    if (::renameat2(parent.fd(), name.c_str(), folder_.fd(), place.c_str(), RENAME_NOREPLACE) == 0) {
      remove_later(place, owner);
      return {};
    }
    if (errno == ENOENT) return {};
    if (errno != EEXIST)
      return fail_errno(fmt::format("Failed to move '{}/{}' out of the way", parent.path(), name), errno);
  }
}

void Remover::remove_later(const std::string& name, uid_t owner) {
  // What is refused waits for the next daemon.
  (void)pool_.post(owner, [this, name] {
    const auto removed = remove_tree(folder_, name, stop_.get_token());
    if (!removed && !stop_.stop_requested() && log_) log_(to_string(removed.error()));
  });
}

}  // namespace drover::container
