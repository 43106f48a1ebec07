#include "kube/client/lease.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/pause.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

const Resource kLeases = {"coordination.k8s.io", "v1", "leases"};
constexpr std::int64_t kMostSeconds = 24 * 3600;

/// As a MicroTime has to be written: with six digits.
std::string micro_time(TimePoint time) {
  auto text = format_time(time);
  text.insert(text.size() - 1, "000");
  return text;
}

std::int64_t whole_number_at(const json& object, const char* pointer) {
  const json::json_pointer place(pointer);
  if (!object.contains(place) || !object[place].is_number_integer()) return 0;
  return object[place].get<std::int64_t>();
}

std::string holder_of(const json& lease) {
  return text_at(lease, "/spec/holderIdentity");
}

}  // namespace

LeaseClocks::Time LeaseClocks::since_boot() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return Time(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

LeaseCandidate::LeaseCandidate(Api& api, LeaseOptions options, LeaseClocks clocks)
    : api_(api), options_(std::move(options)), clocks_(std::move(clocks)) {}

LeaseCandidate::Step LeaseCandidate::step(const std::stop_token& stop) {
  const auto asked = clocks_.steady();
  // A leader knows what stands there; if he is wrong, the version says so.
  auto outcome = is_leader() && lease_ ? write(asked, stop) : look(asked, stop);
  if (!outcome) lease_ = nullptr;                                              // it may have been done
  if (!outcome && outcome.error().kind == ErrorKind::kConflict) outcome = {};  // somebody was faster
  const auto left_of_it = is_leader() ? left() : free_at_ - clocks_.steady();
  if (left_of_it <= left_of_it.zero()) return {options_.retry, std::move(outcome)};
  return {std::min(std::chrono::ceil<milliseconds>(left_of_it), options_.retry), std::move(outcome)};
}

/// What stands there, and what may be done then.
Status LeaseCandidate::look(Time asked, const std::stop_token& stop) {
  auto found = send("get", nullptr, stop);
  if (!found && found.error().kind != ErrorKind::kNotFound) return Failure(found.error());
  const auto& me = options_.identity;
  if (!found) {
    lease_ = nullptr;
    // When somebody removed it, whoever led may not know yet.
    if (const auto before = holder(); !before.empty() && before != me)
      late_writes_ = options_.duration + options_.skew;
    return write(asked, stop);
  }
  see(std::move(*found));
  const auto holder = holder_of(*lease_);
  if (holder == me) return write(asked, stop);
  resign();
  late_writes_ = holder.empty() ? milliseconds(0) : options_.skew;
  if (!holder.empty()) {
    const auto seconds = whole_number_at(*lease_, "/spec/leaseDurationSeconds");
    free_at_ =
        seen_ + (seconds > 0 ? std::chrono::seconds(std::min(seconds, kMostSeconds)) : options_.duration);
    if (clocks_.steady() < free_at_) return {};
  }
  return write(asked, stop);
}

Status LeaseCandidate::write(Time asked, const std::stop_token& stop) {
  const auto body = record(false);
  auto written = send(lease_ ? "update" : "create", &body, stop);
  if (!written) return Failure(written.error());
  see(std::move(*written));
  const auto until = asked + options_.renew_deadline;
  const auto now = clocks_.steady();
  const std::lock_guard lock(mutex_);
  if (now >= until) return {};  // the answer came so late that it has to be renewed first
  if (term_ == 0 || now >= until_) {
    term_ = ++terms_;
    safe_from_ = std::max(safe_from_, now + std::exchange(late_writes_, milliseconds(0)));
  }
  until_ = until;
  return {};
}

void LeaseCandidate::see(json lease) {
  const auto version = text_at(lease, "/metadata/resourceVersion");
  if (std::exchange(version_, version) != version) seen_ = clocks_.steady();
  lease_ = std::make_shared<const json>(std::move(lease));
  const std::lock_guard lock(mutex_);
  holder_ = holder_of(*lease_);
}

/// As it is to be: what others have put into it stays.
json LeaseCandidate::record(bool released) const {
  json lease = {{"apiVersion", api_version(kLeases)},
                {"kind", "Lease"},
                {"metadata", {{"name", options_.name}, {"namespace", options_.name_space}}}};
  if (lease_) lease.update(*lease_);
  auto& spec = lease["spec"];
  const auto now = micro_time(clocks_.wall());
  if (lease_ && !released && holder_of(*lease_) != options_.identity)
    spec["leaseTransitions"] = whole_number_at(*lease_, "/spec/leaseTransitions") + 1;
  if (!lease_) spec["leaseTransitions"] = 0;
  if (released || !lease_ || holder_of(*lease_) != options_.identity) spec["acquireTime"] = now;
  spec["renewTime"] = now;
  spec["holderIdentity"] = released ? "" : options_.identity;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.duration).count();
  spec["leaseDurationSeconds"] = released ? 1 : seconds;
  return lease;
}

Result<json> LeaseCandidate::send(const std::string& verb, const json* body, const std::stop_token& stop) {
  ApiRequest request = {.verb = verb,
                        .path = {kLeases, options_.name_space, verb == "create" ? "" : options_.name},
                        .patience = options_.renew_deadline / 2};
  if (body) {
    request.content_type = "application/json";
    request.body = to_text(*body);
  }
  return api_.send(request, stop);
}

void LeaseCandidate::resign() {
  const std::lock_guard lock(mutex_);
  term_ = 0;
}

Status LeaseCandidate::release() {
  resign();
  if (!lease_) {
    auto found = send("get", nullptr, {});
    if (!found) return Failure(found.error());
    see(std::move(*found));
  }
  if (holder_of(*lease_) != options_.identity) return {};
  const auto body = record(true);
  auto released = send("update", &body, {});
  lease_ = nullptr;
  if (!released) return Failure(released.error());
  see(std::move(*released));
  return {};
}

std::uint64_t LeaseCandidate::term() const {
  const std::lock_guard lock(mutex_);
  return clocks_.steady() < until_ ? term_ : 0;
}

LeaseCandidate::Time::duration LeaseCandidate::left() const {
  const std::lock_guard lock(mutex_);
  return term_ == 0 ? Time::duration::zero() : std::max(until_ - clocks_.steady(), Time::duration::zero());
}

LeaseCandidate::Time LeaseCandidate::safe_from() const {
  const std::lock_guard lock(mutex_);
  return safe_from_;
}

std::string LeaseCandidate::holder() const {
  const std::lock_guard lock(mutex_);
  return holder_;
}

LeaderElection::LeaderElection(Api& api, LeaseOptions options, LeaderCallbacks callbacks)
    : callbacks_(std::move(callbacks)),
      candidate_(api, std::move(options)),
      teller_([this](const std::stop_token& stop) { tell(stop); }),
      runner_([this](const std::stop_token& stop) { run(stop); }) {}

LeaderElection::~LeaderElection() {
  runner_.request_stop();
  runner_.join();
  candidate_.resign();
  teller_.request_stop();
  teller_.join();
  if (const auto released = candidate_.release(); !released && callbacks_.on_trouble)
    callbacks_.on_trouble(released.error());
}

void LeaderElection::run(const std::stop_token& stop) {
  std::string trouble;
  milliseconds wait{0};
  do {
    const auto step = candidate_.step(stop);
    if (stop.stop_requested()) return;
    wait = step.wait;
    const auto said = step.outcome ? "" : step.outcome.error().message;
    if (std::exchange(trouble, said) != said && !step.outcome && callbacks_.on_trouble)
      callbacks_.on_trouble(step.outcome.error());
    const std::lock_guard lock(mutex_);
    ++steps_;
    stepped_.notify_all();
  } while (pause(wait, stop));
}

void LeaderElection::tell(const std::stop_token& stop) {
  std::uint64_t told = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    const auto now = candidate_.term();
    if (now != told) {
      lock.unlock();
      const auto& callback = told != 0 ? callbacks_.on_lost : callbacks_.on_started;
      if (callback) callback();
      told = told != 0 ? 0 : now;
      lock.lock();
      continue;
    }
    if (stop.stop_requested()) return;
    const auto is_news = [this, seen = steps_] { return steps_ != seen; };
    if (told != 0)
      stepped_.wait_for(lock, stop, candidate_.left(), is_news);
    else
      stepped_.wait(lock, stop, is_news);
  }
}

}  // namespace drover::kube
