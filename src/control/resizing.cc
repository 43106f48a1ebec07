#include "control/resizing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "control/sharing.h"
#include "placement/request.h"

namespace drover::control {
namespace {

using placement::Grant;
using workload::Share;

constexpr const char* kField = "/gpu_share";

Failure refuse(std::string what, std::string hint) {
  return fail(ErrorKind::kConflict, std::move(what), std::move(hint));
}

/// Whether it has a share that is its own to change.
Status check_kind(const Draft& draft, const workload::Task& task) {
  const auto& wanted = task.resources;
  const auto which = fmt::format("The task '{}'", task.id);
  if (draft.base().placed_by_others)
    return refuse("The cluster on which tasks run keeps their shares as they are",
                  "submit the task anew with the share that it is to have");
  if (wanted.gpu_count() == 0) return refuse(which + " has no GPU", "");
  if (!wanted.part.empty())
    return refuse(which + " has parts of GPUs, whose size is the hardware's",
                  "submit it anew with another --gpu-part");
  if (wanted.share.whole())
    return refuse(which + " has whole GPUs, and no share of one", "submit it anew with --gpu-share");
  if (!wanted.group.empty())
    return refuse(
        fmt::format("{} has its share together with the others of its group '{}'", which, wanted.group),
        "submit them anew with the share that they are to have");
  if (task.gang)
    return refuse(which + " is a member of a gang, whose members start and are placed as one",
                  "submit the gang anew with the share that its members are to have");
  using enum workload::OriginKind;
  if (task.origin.kind == kService)
    return refuse(fmt::format("{} is an instance of the app '{}'", which, task.origin.name),
                  "change the app's gpu_share: its instances are replaced");
  if (task.origin.kind == kSchedule)
    return refuse(fmt::format("{} is a run of the job '{}'", which, task.origin.name),
                  "change the job's gpu_share: it counts from the next run on");
  if (task.origin.kind == kFramework)
    return refuse(which + " is a framework's, which says what its tasks have", "");
  return {};
}

Status check_state(const TaskRecord& record) {
  const auto which = fmt::format("The task '{}'", record.task.id);
  switch (record.state) {
    case TaskState::kRunning:
      return {};
    case TaskState::kQueued:
      return refuse(which + " waits, and has no share yet",
                    "stop it, and submit it anew with the share that it is to have");
    case TaskState::kStarting:
      return refuse(which + " is about to start", "try again when it runs");
    case TaskState::kStopping:
      return refuse(which + " is being stopped", "");
    default:
      return refuse(which + " has ended", "submit it anew with the share that it is to have");
  }
}

const gpu::Device* device_of(const Draft& draft, const std::string& uuid) {
  const auto& devices = draft.machine().inventory.devices;
  const auto found = std::ranges::find(devices, uuid, &gpu::Device::uuid);
  return found == devices.end() ? nullptr : &*found;
}

std::string name_of(const gpu::Device& device) {
  return fmt::format("GPU {}", device.index);
}

/// The same GPUs, with so much of each.
Result<std::vector<Grant>> grants_with(const Draft& draft, const TaskRecord& record, const Share& share) {
  auto grants = record.gpus;
  for (auto& grant : grants) {
    const auto* device = device_of(draft, grant.uuid);
    if (device == nullptr)
      return fail(ErrorKind::kUnavailable, fmt::format("GPU {} is not there now", grant.uuid),
                  "try again when it is");
    const auto all = device->memory_bytes.value_or(0);
    const auto held = workload::held_of(share, all);
    if (share.memory_bytes > all)
      return fail(ErrorKind::kInvalid,
                  fmt::format("{} has {}, and {} of it are asked for", name_of(*device), format_bytes(all),
                              format_bytes(share.memory_bytes)),
                  "ask for less", kField);
    if (held.milli >= 1000)
      return fail(ErrorKind::kInvalid, fmt::format("A share is less than the whole {}", name_of(*device)),
                  "for whole GPUs, submit the task anew with --gpus", kField);
    if (!record.tier.empty() && held.memory_bytes < workload::kMinGuarded)
      return fail(
          ErrorKind::kInvalid,
          fmt::format("Nothing is held to less than {}, and {} of {} are asked for",
                      format_bytes(workload::kMinGuarded), format_bytes(held.memory_bytes), name_of(*device)),
          "ask for more: how a task is held to its share does not change while it runs", kField);
    grant.milli = held.milli;
    grant.memory_bytes = held.memory_bytes;
  }
  return grants;
}

bool is_more(const Grant& grant, const Grant& than) {
  return grant.milli > than.milli || grant.memory_bytes > than.memory_bytes;
}

/// Beside what others have of these GPUs.
Status check_room(const Draft& draft, const TaskRecord& record, const std::vector<Grant>& grants,
                  const Share& share) {
  auto cluster = draft.cluster();
  cluster.release(record.task.id);
  for (std::size_t i = 0; i < grants.size(); ++i) {
    if (!is_more(grants[i], record.gpus[i])) continue;
    const auto left = cluster.left_of(draft.base().node, grants[i].uuid);
    if (grants[i].milli <= left.milli && grants[i].memory_bytes <= left.memory_bytes) continue;
    const auto what = [&](const Grant& grant) {
      return share.memory_bytes > 0 ? format_bytes(grant.memory_bytes)
                                    : fmt::format("{:g}", static_cast<double>(grant.milli) / 1000);
    };
    const Grant most{grants[i].uuid, left.milli, left.memory_bytes};
    return refuse(fmt::format("Of {}, {} are asked for, and {} are free with the {} that the task has",
                              name_of(*device_of(draft, grants[i].uuid)), what(grants[i]), what(most),
                              what(record.gpus[i])),
                  "ask for no more than that, or wait until others end");
  }
  return {};
}

/// Only GPUs: it gets no other CPUs or memory.
Status check_limit(const std::string& whose, const placement::Limits& limit, std::int64_t used,
                   std::int64_t more) {
  if (!limit.gpu_milli || used + more <= *limit.gpu_milli) return {};
  const auto gpus = [](std::int64_t milli) { return static_cast<double>(milli) / 1000; };
  return refuse(fmt::format("{} has a limit of {:g} GPUs, of which {:g} are in use, and {:g} would be", whose,
                            gpus(*limit.gpu_milli), gpus(used), gpus(used + more)),
                "ask for less, or wait until others end");
}

Status check_limits(const Draft& draft, const workload::Task& before, const workload::Task& after) {
  const auto cluster = draft.cluster();
  const auto more = held_by(cluster, {&after}).gpu_milli - held_by(cluster, {&before}).gpu_milli;
  for (const auto& [path, queue] : draft.rules().queues)
    if (is_in(after, path))
      DROVER_CHECK_OK(check_limit(fmt::format("The queue '{}'", path), queue.limit,
                                  used_in(draft.base(), path).gpu_milli, more));
  for (const auto& [subject, quota] : draft.rules().quotas)
    if (is_of(after, subject))
      DROVER_CHECK_OK(check_limit(fmt::format("'{}'", subject.name), quota.limit,
                                  used_by(draft.base(), subject).gpu_milli, more));
  return {};
}

/// "it has 12 GiB (0.3) of GPU 0 instead of 8 GiB (0.2)"
std::string in_words(const Draft& draft, const std::vector<Grant>& before, const std::vector<Grant>& after) {
  std::vector<std::string> changes;
  const auto words = [](const Grant& grant) {
    return fmt::format("{} ({:g})", format_bytes(grant.memory_bytes),
                       static_cast<double>(grant.milli) / 1000);
  };
  for (std::size_t i = 0; i < after.size(); ++i)
    changes.push_back(fmt::format("{} of {} instead of {}", words(after[i]),
                                  name_of(*device_of(draft, after[i].uuid)), words(before[i])));
  return fmt::format("it has {}", fmt::join(changes, ", "));
}

std::uint64_t most_memory(const std::vector<Grant>& grants) {
  return std::ranges::max(grants, {}, &Grant::memory_bytes).memory_bytes;
}

}  // namespace

Status resize(Draft& draft, const std::string& id, const Share& share) {
  const auto& known = *draft.find(id);
  DROVER_CHECK_OK(check_kind(draft, known.task));
  DROVER_CHECK_OK(check_state(known));
  auto task = known.task;
  task.resources.share = share;
  if (share.whole())
    return fail(ErrorKind::kInvalid, "A share is less than a whole GPU",
                "for whole GPUs, submit the task anew with --gpus", kField);
  if (auto valid = placement::validate(task.resources); !valid) {
    valid.error().path = kField;
    return valid;
  }
  if (share == known.task.resources.share) return {};
  DROVER_TRY(auto grants, grants_with(draft, known, share));
  const bool is_no_more = std::ranges::equal(grants, known.gpus, std::not_fn(is_more));
  if (!is_no_more) {
    DROVER_CHECK_OK(check_room(draft, known, grants, share));
    DROVER_CHECK_OK(check_limits(draft, known.task, task));
  }
  const auto words = in_words(draft, known.gpus, grants);
  auto& record = draft.change(id);
  const auto most = std::max(record.shrunk_from, most_memory(record.gpus));
  record.shrunk_from = most > most_memory(grants) ? most : 0;
  record.task = std::move(task);
  record.gpus = std::move(grants);
  draft.act(action::Resize{id});
  draft.notify(notice::Noted{"share_resized", record, words});
  return {};
}

}  // namespace drover::control
