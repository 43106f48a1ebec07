#include "cli/top/source.h"

#include <fmt/format.h>

#include "base/users.h"
#include "cli/context.h"
#include "cli/gpu_words.h"

namespace drover::cli::top {
namespace {

using nlohmann::json;

constexpr std::size_t kMostNames = 1000;

}  // namespace

Source::Source(Client client, bool of_this_machine, GpusHere here, Whom whom)
    : client_(std::move(client)), of_this_machine_(of_this_machine), here_(std::move(here)), whom_(whom) {}

Result<Snapshot> Source::look() {
  auto snapshot = whom_ == Whom::kHere ? look_here() : look_at_daemon();
  if (snapshot && whom_ == Whom::kEither) whom_ = Whom::kDaemon;
  if (!snapshot && whom_ == Whom::kEither && snapshot.error().kind == ErrorKind::kUnavailable)
    snapshot = look_here();
  if (!snapshot) return snapshot;
  snapshot->at = wall_clock();
  if (of_this_machine_) name_users(*snapshot);
  return snapshot;
}

Result<Snapshot> Source::look_at_daemon() const {
  Snapshot snapshot;
  DROVER_TRY(snapshot.gpus, gpus_in_use(client_));
  const auto keep = [&](const json& record) { snapshot.tasks.push_back(record); };
  DROVER_CHECK_OK(client_.get_items("/v1/tasks?active=true&summary=true", "tasks", keep));
  DROVER_TRY(auto queues, client_.get("/v1/queues"));
  snapshot.queues = queues.value("queues", json::array());
  return snapshot;
}

Result<Snapshot> Source::look_here() const {
  if (!here_) return fail(ErrorKind::kUnsupported, "This program does not look at GPUs itself");
  Snapshot snapshot;
  snapshot.of_daemon = false;
  DROVER_TRY(snapshot.gpus, here_());
  return snapshot;
}

/// The user database may be far away: nobody is looked up twice.
void Source::name_users(Snapshot& snapshot) {
  for (const auto& gpu : snapshot.gpus.value("gpus", json::array()))
    for (const auto& process : usage_of(gpu).value("processes", json::array())) {
      const auto uid = process.value("uid", json());
      if (!uid.is_number_unsigned() || users_.size() >= kMostNames) continue;
      const auto number = uid.get<std::uint32_t>();
      if (users_.contains(number)) continue;
      const auto user = user_of(number, 0);
      users_[number] = user ? user->name : std::to_string(number);
    }
  snapshot.users = users_;
}

std::string Source::stop(const std::string& task, bool force) const {
  const auto answer = client_.post(task_target(task, "/stop"), {{"force", force}});
  if (!answer) return to_string(answer.error());
  return fmt::format("Task {} was {}", task, force ? "killed" : "asked to end");
}

}  // namespace drover::cli::top
