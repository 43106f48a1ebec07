#include "placement/queues.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/decode.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxLevels = 8;
constexpr int kMaxWeight = 1'000'000;
// Far beyond every cluster.
constexpr std::int64_t kMaxAmount = 1'000'000'000'000;
constexpr std::uint64_t kMaxMemory = 1ULL << 62;
constexpr std::size_t kQueuesNamed = 20;

class Mistakes {
 public:
  void add(std::string path, std::string message, std::string hint = "") {
    list_.push_back({ErrorKind::kInvalid, std::move(message), std::move(hint), std::move(path)});
  }
  Status status() const {
    if (list_.empty()) return {};
    if (list_.size() == 1) return Failure(list_.front());  // it says itself whose it is
    auto error = join_mistakes(list_, "the rules of sharing");
    error.path = list_.front().path;
    return Failure(std::move(error));
  }

 private:
  std::vector<Error> list_;
};

/// The dimensions of Limits, one by one, so that each rule is written once.
struct Field {
  const char* name;
  const char* unit;
};
constexpr Field kGpusField{"gpu_milli", "thousandths of GPUs"};
constexpr Field kCpusField{"milli_cpus", "thousandths of CPUs"};
constexpr Field kMemoryField{"memory_bytes", "bytes of memory"};

/// Calls visit(field, the dimension of each of the limits …).
template <typename Visit, typename... All>
void each_field(Visit visit, All&... limits) {
  visit(kGpusField, limits.gpu_milli...);
  visit(kCpusField, limits.milli_cpus...);
  visit(kMemoryField, limits.memory_bytes...);
}

/// Never more than the type holds.
template <typename T>
T sum(T a, T b) {
  return b > std::numeric_limits<T>::max() - a ? std::numeric_limits<T>::max() : a + b;
}

void check_amounts(const Limits& limits, const std::string& path, Mistakes& mistakes) {
  const auto check = [&](const Field& field, const auto& value, auto highest) {
    const auto at = path + "/" + field.name;
    if (value && *value < decltype(highest){0})
      mistakes.add(at, fmt::format("{} {} are less than nothing", *value, field.unit));
    if (value && *value > highest)
      mistakes.add(at, fmt::format("{} {} are absurdly much", *value, field.unit));
  };
  check(kGpusField, limits.gpu_milli, kMaxAmount);
  check(kCpusField, limits.milli_cpus, kMaxAmount);
  check(kMemoryField, limits.memory_bytes, kMaxMemory);
}

void check_path(const std::string& path, const std::string& at, Mistakes& mistakes) {
  std::size_t levels = 0;
  for (std::string_view rest = path;; ++levels) {
    const auto slash = rest.find('/');
    const auto name = rest.substr(0, slash);
    if (!workload::is_queue_name(name))
      mistakes.add(at, fmt::format("'{}' is not a name of a queue", path),
                   "a name is 1 to 64 letters, digits, '.', '_' or '-', and not '.' or '..'; '/' stands "
                   "between levels");
    if (name.empty() || slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (levels >= kMaxLevels)
    mistakes.add(at, fmt::format("'{}' has {} levels", path, levels + 1),
                 fmt::format("at most {} are possible", kMaxLevels));
}

constexpr const char* kOfName = "1 to 64 printable characters and no spaces";
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

void check_users(const std::vector<std::string>& users, const std::string& at, Mistakes& mistakes) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < users.size(); ++i) {
    const auto path = fmt::format("{}/{}", at, i);
    if (!is_name(users[i])) mistakes.add(path, fmt::format("a user's name has {}", kOfName));
    if (!seen.insert(users[i]).second)
      mistakes.add(path, fmt::format("the user '{}' is named twice", users[i]));
  }
}

void check_queue(const std::string& key, const Queue& queue, Mistakes& mistakes) {
  const auto at = "/queues/" + pointer_token(key);
  check_path(key, at, mistakes);
  if (queue.path != key)
    mistakes.add(at + "/path", fmt::format("the queue '{}' calls itself '{}'", key, queue.path));
  check_amounts(queue.limit, at + "/limit", mistakes);
  check_amounts(queue.guarantee, at + "/guarantee", mistakes);
  if (queue.weight < 1 || queue.weight > kMaxWeight)
    mistakes.add(at + "/weight", fmt::format("a weight of {} is not possible", queue.weight),
                 fmt::format("give 1 to {}", kMaxWeight));
  check_users(queue.users, at + "/users", mistakes);
}

/// The guarantees of a queue's children are what it must be able to give: from the leaves up, what each
/// parent must at least be sure of, whether somebody defined it or not.
void check_guarantees(const Rules& rules, Mistakes& mistakes) {
  std::map<std::string_view, Limits, std::greater<>> promised;  // children come before their parents
  for (const auto& [path, queue] : rules.queues)
    for (auto at = std::string_view(path); !at.empty(); at = parent_of(at)) promised[at];
  for (auto& [path, children] : promised) {
    const auto found = rules.queues.find(std::string(path));
    const Queue queue = found == rules.queues.end() ? Queue{} : found->second;
    const auto at = "/queues/" + pointer_token(path) + "/guarantee";
    const auto parent = promised.find(parent_of(path));
    Limits none;
    each_field(
        [&](const Field& field, auto& of_children, const auto& own, const auto& limit, auto& of_parent) {
          if (own && of_children && *of_children > *own)
            mistakes.add(fmt::format("{}/{}", at, field.name),
                         fmt::format("the children of '{}' are together sure of {} {}, and it is of {}", path,
                                     *of_children, field.unit, *own));
          const auto sure = own ? own : of_children;
          if (sure && limit && *sure > *limit)
            mistakes.add(fmt::format("{}/{}", at, field.name),
                         fmt::format("'{}' is sure of {} {}, but may hold at most {}", path, *sure,
                                     field.unit, *limit));
          if (sure) of_parent = sum(of_parent.value_or(0), *sure);
        },
        children, queue.guarantee, queue.limit, parent == promised.end() ? none : parent->second);
  }
}

void check_quota(const Subject& key, const Quota& quota, Mistakes& mistakes) {
  const bool user = key.kind == SubjectKind::kUser;
  const auto at = fmt::format("/quotas/{}:{}", user ? "user" : "namespace", pointer_token(key.name));
  if (!is_name(key.name)) mistakes.add(at, fmt::format("whom a quota is for has a name of {}", kOfName));
  if (quota.subject != key)
    mistakes.add(at + "/subject",
                 fmt::format("the quota of '{}' calls itself that of '{}'", key.name, quota.subject.name));
  check_amounts(quota.limit, at + "/limit", mistakes);
  if (!user && quota.max_priority)
    mistakes.add(at + "/max_priority",
                 fmt::format("the namespace '{}' cannot have a highest priority", key.name),
                 "give it to users");
}

bool exists(const Rules& rules, const std::string& queue) {
  if (queue == kDefaultQueue || rules.queues.contains(queue)) return true;
  const auto child = rules.queues.lower_bound(queue + "/");
  return !queue.empty() && child != rules.queues.end() && child->first.starts_with(queue + "/");
}

Failure no_such_queue(const Rules& rules, const std::string& queue) {
  std::set<std::string> names{std::string(kDefaultQueue)};
  for (const auto& [path, unused] : rules.queues)
    for (auto at = std::string_view(path); !at.empty(); at = parent_of(at)) names.emplace(at);
  const auto meant = nearest(queue, names);
  std::vector<std::string> named;
  for (const auto& name : names)
    if (named.size() < kQueuesNamed) named.push_back(name);
  return fail(ErrorKind::kNotFound, fmt::format("there is no queue '{}'", queue),
              fmt::format("{}there {}: {}{}", meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant),
                          names.size() == 1 ? "is" : "are", fmt::join(named, ", "),
                          names.size() > named.size() ? ", …" : ""),
              "/queue");
}

}  // namespace

std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

Status validate(const Rules& rules) {
  Mistakes mistakes;
  for (const auto& [path, queue] : rules.queues) check_queue(path, queue, mistakes);
  for (const auto& [subject, quota] : rules.quotas) check_quota(subject, quota, mistakes);
  DROVER_CHECK_OK(mistakes.status());  // sums are only made of amounts that are sound
  check_guarantees(rules, mistakes);
  return mistakes.status();
}

TimeLimits time_limits(const Rules& rules, std::string_view queue) {
  TimeLimits strictest;
  const auto take = [](auto& most, const auto& limit) {
    if (limit) most = std::min(most.value_or(*limit), *limit);
  };
  for (auto at = queue; !at.empty(); at = parent_of(at)) {
    const auto found = rules.queues.find(std::string(at));
    if (found == rules.queues.end()) continue;
    take(strictest.timeout, found->second.most.timeout);
    take(strictest.idle_timeout, found->second.most.idle_timeout);
  }
  return strictest;
}

Status may_use(const Rules& rules, const std::string& queue, const std::string& user) {
  if (!exists(rules, queue)) return no_such_queue(rules, queue);
  bool everybody = true;
  for (auto at = std::string_view(queue); !at.empty(); at = parent_of(at)) {
    const auto found = rules.queues.find(std::string(at));
    if (found == rules.queues.end() || found->second.users.empty()) continue;
    everybody = false;
    const auto& users = found->second.users;
    if (std::find(users.begin(), users.end(), user) != users.end()) return {};
  }
  if (everybody) return {};
  return fail(ErrorKind::kPermissionDenied,
              fmt::format("the user '{}' may not put work into the queue '{}'", user, queue),
              "ask whoever keeps the queues to be put on its list, or name another queue", "/queue");
}

std::vector<Bound> bounds_on(const Rules& rules, std::string_view queue, const std::string& user,
                             const std::string& name_space) {
  std::vector<Bound> bounds;
  for (auto at = queue; !at.empty(); at = parent_of(at))
    if (const auto found = rules.queues.find(std::string(at)); found != rules.queues.end())
      bounds.push_back({fmt::format("the queue '{}'", at), found->second.limit});
  for (const auto& [subject, kind] : {std::pair(Subject{SubjectKind::kUser, user}, "user"),
                                      std::pair(Subject{SubjectKind::kNamespace, name_space}, "namespace")})
    if (const auto quota = rules.quotas.find(subject); quota != rules.quotas.end())
      bounds.push_back({fmt::format("the {} '{}'", kind, subject.name), quota->second.limit});
  return bounds;
}

Status may_have_priority(const Rules& rules, const std::string& user, int priority) {
  const auto quota = rules.quotas.find(Subject{SubjectKind::kUser, user});
  const int highest = quota == rules.quotas.end() ? 0 : quota->second.max_priority.value_or(0);
  if (priority <= highest) return {};
  return fail(ErrorKind::kPermissionDenied,
              fmt::format("the user '{}' may not ask for a priority of {}", user, priority),
              fmt::format("ask for at most {}", highest), "/priority");
}

}  // namespace drover::placement
