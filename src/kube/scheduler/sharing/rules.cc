#include "kube/scheduler/sharing/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/quantity.h"
#include "base/shorten.h"
#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;
using placement::Limits;
using placement::Rules;

/// Reads one Queue or Quota.
class SharingReader {
 public:
  explicit SharingReader(const json& object)
      : spec_(reader_.object(object, "spec")), name_(text_at(object, "/metadata/name")) {}

  Result<placement::Queue> queue() {
    placement::Queue queue;
    queue.path = queue_path(name_);
    queue.limit = limits("limit");
    queue.guarantee = limits("guarantee");
    queue.weight = static_cast<int>(number("weight", 0, std::numeric_limits<int>::max()).value_or(1));
    queue.users = reader_.texts(spec_, "namespaces");
    DROVER_CHECK_OK(reader_.status(fmt::format("the queue '{}'", shortened(name_))));
    Rules alone;
    alone.queues.emplace(queue.path, queue);
    DROVER_CHECK_OK(placement::validate(alone));
    return queue;
  }

  Result<placement::Quota> quota(std::optional<int>& most_priority) {
    placement::Quota quota;
    quota.subject = {placement::SubjectKind::kNamespace, name_};
    quota.limit = limits("limit");
    if (const auto most =
            number("maxPriority", std::numeric_limits<int>::min(), std::numeric_limits<int>::max()))
      most_priority = static_cast<int>(*most);
    DROVER_CHECK_OK(reader_.status(fmt::format("the quota '{}'", shortened(name_))));
    Rules alone;
    alone.quotas.emplace(quota.subject, quota);
    DROVER_CHECK_OK(placement::validate(alone));
    return quota;
  }

 private:
  Limits limits(const char* field) {
    Limits limits;
    const auto& given = reader_.object(spec_, field);
    limits.gpu_milli = amount(given, field, "gpus", 1'000'000);
    limits.milli_cpus = amount(given, field, "cpus", 1'000'000);
    if (const auto memory = amount(given, field, "memory", 1'000'000'000))
      limits.memory_bytes = static_cast<std::uint64_t>(*memory);
    return limits;
  }

  /// A quantity as a multiple of so many billionths, which it has to be.
  std::optional<std::int64_t> amount(const json& given, const char* field, const char* name, Nanos unit) {
    const auto& value = reader_.field(given, name);
    if (value.is_null()) return std::nullopt;
    const auto text = value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : "";
    const auto quantity = Quantity::parse(text);
    const auto nanos = quantity ? quantity->billionths() : std::nullopt;
    if (nanos && *nanos >= 0 && *nanos % unit == 0 &&
        *nanos / unit <= std::numeric_limits<std::int64_t>::max())
      return static_cast<std::int64_t>(*nanos / unit);
    reader_.mistake(fmt::format("'{}' of the {} is '{}', and no amount{}", name, field,
                                shortened(value.dump()),
                                unit == 1'000'000 ? " in thousandths at the finest" : ""));
    return std::nullopt;
  }

  std::optional<std::int64_t> number(const char* name, std::int64_t least, std::int64_t most) {
    const auto number = reader_.number(spec_, name);
    if (number && (*number < least || *number > most)) {
      reader_.mistake(fmt::format("'{}' is {}, and not from {} to {}", name, *number, least, most));
      return std::nullopt;
    }
    return number;
  }

  FieldReader reader_;
  const json& spec_;
  std::string name_;
};

/// Parents come before their children, and of equals the older one.
auto order_of(const json& object) {
  auto name = text_at(object, "/metadata/name");
  const auto depth = std::ranges::count(name, '.');
  return std::tuple(depth, text_at(object, "/metadata/creationTimestamp"), std::move(name));
}

std::vector<Object> ordered(std::vector<Object> objects) {
  std::ranges::sort(objects, {}, [](const Object& object) { return order_of(*object); });
  return objects;
}

bool guarantees_something(const placement::Queue& queue) {
  return queue.guarantee != Limits();
}

/// Keeps the guarantees that go together, those in front first.
void keep_guarantees(Sharing& sharing, const std::vector<std::string>& paths) {
  if (placement::validate(sharing.rules)) return;
  std::map<std::string, Limits> wanted;
  for (auto& [path, queue] : sharing.rules.queues) wanted[path] = std::exchange(queue.guarantee, {});
  for (const auto& path : paths) {
    auto& queue = sharing.rules.queues.at(path);
    queue.guarantee = wanted[path];
    if (!guarantees_something(queue)) continue;
    const auto sound = placement::validate(sharing.rules);
    if (sound) continue;
    queue.guarantee = {};
    sharing.not_guaranteed[queue_name(path)] = sound.error().message;
  }
}

}  // namespace

std::string queue_path(std::string_view name) {
  std::string path(name);
  std::ranges::replace(path, '.', '/');
  return path;
}

std::string queue_name(std::string_view path) {
  std::string name(path);
  std::ranges::replace(name, '/', '.');
  return name;
}

Sharing read_sharing(const std::vector<Object>& queues, const std::vector<Object>& quotas) {
  Sharing sharing;
  std::vector<std::string> paths;
  for (const auto& object : ordered(queues)) {
    auto queue = SharingReader(*object).queue();
    if (!queue) {
      sharing.refused_queues[text_at(*object, "/metadata/name")] = queue.error().message;
      continue;
    }
    paths.push_back(queue->path);
    sharing.rules.queues.insert_or_assign(queue->path, *queue);
  }
  for (const auto& object : quotas) {
    std::optional<int> most_priority;
    const auto quota = SharingReader(*object).quota(most_priority);
    const auto name = text_at(*object, "/metadata/name");
    if (quota)
      sharing.rules.quotas.insert_or_assign(quota->subject, *quota);
    else
      sharing.refused_quotas[name] = quota.error().message;
    if (quota && most_priority) sharing.most_priority[name] = *most_priority;
  }
  keep_guarantees(sharing, paths);
  return sharing;
}

}  // namespace drover::kube::scheduler
