#include "kube/scheduler/claims/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "kube/scheduler/predicates.h"

namespace drover::kube::scheduler {
namespace {

using Match = Choice::Match;
using Outcome = Search::Outcome;

constexpr ServerVersion kCountsFractions{1, 37};

bool is_as_far_as(const Choice& one, const Choice* other) {
  return other == nullptr || std::pair(one.claim, one.request) >= std::pair(other->claim, other->request);
}

}  // namespace

Search::Search(const DevicePools& pools, const Node& node, const Claims& claims, const Numbers& numbers)
    : pools_(pools), claims_(claims), numbers_(numbers), devices_(pools, node) {
  chosen_.resize(claims.size());
  for (const auto* claim : claims) {
    chosen_wishes_.emplace_back(claim->spec->requests.size(), 0);
    auto& constraints = constraints_.emplace_back();
    for (const auto& constraint : claim->spec->constraints) constraints.emplace_back(constraint);
  }
}

std::string Search::words_of(const ResourceClaim& claim, std::size_t place, const Numbers& numbers) {
  if (claim.name.empty()) return "the ResourceClaim for its limits";
  if (numbers.of == 1) return "its ResourceClaim";
  return fmt::format("its ResourceClaim {} of {}", numbers.first + place + 1, numbers.of);
}

Result<Search> Search::prepare(const DevicePools& pools, const Node& node, const Claims& claims,
                               const Numbers& numbers) {
  Search search(pools, node, claims, numbers);
  for (std::size_t i = 0; i < claims.size(); ++i)
    if (auto prepared = search.prepare_claim(i); !prepared)
      return Failure(context(std::move(prepared).error(), search.words(i)));
  return search;
}

Status Search::prepare_claim(std::size_t claim) {
  const auto& spec = *claims_[claim]->spec;
  if (!spec.unsupported.empty())
    return fail(ErrorKind::kUnsupported, fmt::format("it {}", spec.unsupported),
                "let Kubernetes' own scheduler place the pod");
  auto& by_request = choices_.emplace_back();
  std::size_t least = 0;
  for (std::size_t request = 0; request < spec.requests.size(); ++request) {
    auto& by_wish = by_request.emplace_back();
    auto fewest = kMostDevicesOfClaim + 1;
    for (const auto& wish : spec.requests[request].wishes) {
      auto choice = prepare_choice(claim, request, wish);
      if (!choice)
        return Failure(context(std::move(choice).error(),
                               fmt::format("the request '{}'", full_name(spec.requests[request], wish))));
      by_wish.push_back(std::move(*choice));
      fewest = std::min(fewest, by_wish.back().count);
    }
    least += fewest;
  }
  if (least > kMostDevicesOfClaim && refusal_.empty()) {
    const auto takes_all = std::ranges::any_of(spec.requests, [](const DeviceRequest& request) {
      return std::ranges::any_of(request.wishes, &DeviceWish::all);
    });
    auto why = fmt::format("wants more than the {} devices that a claim may have", kMostDevicesOfClaim);
    if (!takes_all) return fail(ErrorKind::kInvalid, fmt::format("it {}", why), "use several claims");
    refusal_ = fmt::format("{} {}", words(claim), why);
  }
  return {};
}

Result<Choice> Search::prepare_choice(std::size_t claim, std::size_t request, const DeviceWish& wish) {
  Choice choice{claim, request, &wish, pools_.device_class(wish.device_class)};
  choice.full_name = full_name(claims_[claim]->spec->requests[request], wish);
  if (choice.device_class == nullptr)
    return fail(ErrorKind::kNotFound, fmt::format("there is no DeviceClass '{}'", wish.device_class),
                "'kubectl get deviceclasses' lists them");
  if (!choice.device_class->unsupported.empty())
    return fail(ErrorKind::kUnsupported,
                fmt::format("its DeviceClass '{}' {}", wish.device_class, choice.device_class->unsupported),
                "let Kubernetes' own scheduler place the pod");
  for (const auto* expressions : {&choice.device_class->selectors, &wish.selectors})
    for (const auto& expression : *expressions)
      choice.selectors.push_back(pools_.selectors().compiled(expression));
  choice.matches.reserve(devices_.candidates().size());
  for (std::size_t i = 0; i < devices_.candidates().size(); ++i) choice.matches.push_back(match(choice, i));
  if (wish.all)
    DROVER_CHECK_OK(gather_all(choice));
  else
    choice.count = static_cast<std::size_t>(std::min<std::int64_t>(wish.count, kMostDevicesOfClaim + 1));
  return choice;
}

Result<bool> Search::is_selected(const Choice& choice, const Candidate& candidate) const {
  for (std::size_t i = 0; i < choice.selectors.size(); ++i) {
    auto selected = pools_.selectors().matches(*choice.selectors[i], candidate.kind());
    if (!selected) {
      auto what = fmt::format("the device '{}'", to_string(candidate.id()));
      if (i < choice.device_class->selectors.size())
        what = fmt::format("a selector of its DeviceClass '{}': {}", choice.wish->device_class, what);
      return Failure(context(std::move(selected).error(), what));
    }
    if (!*selected) return false;
  }
  return true;
}

Match Search::match(Choice& choice, std::size_t index) {
  const auto& candidate = devices_.candidates()[index];
  const auto failed = [&](Error error) {
    choice.errors.emplace(index, std::move(error));
    return Match::kFailed;
  };
  const auto selected = is_selected(choice, candidate);
  if (!selected) return failed(selected.error());
  if (!*selected || !candidate.here) return Match::kNo;
  const auto& kind = candidate.kind();
  if (kind.shared || !choice.wish->capacity.empty() || candidate.is_shared_already()) {
    auto share = consumption(choice.wish->capacity, kind.capacities, pools_.version() >= kCountsFractions);
    if (!share) return failed(share.error());
    if (!*share) return Match::kNo;
    choice.shares.emplace(index, std::move(**share));
  }
  return candidate.device->unsupported ? Match::kUnsupported : Match::kYes;
}

Status Search::gather_all(Choice& choice) {
  const auto refuse = [&](std::string why) {
    if (refusal_.empty()) refusal_ = fmt::format("{} asks for all devices, but {}", words(choice.claim), why);
  };
  for (const auto& pool : devices_.pools()) {
    if (pool.incomplete)
      refuse(fmt::format("the pool '{}' of '{}' is being updated", pool.key->name, pool.key->driver));
    else if (!pool.invalid.empty())
      refuse(fmt::format("the pool '{}' of '{}' cannot be used: it {}", pool.key->name, pool.key->driver,
                         pool.invalid));
  }
  for (std::size_t i = 0; i < choice.matches.size(); ++i) {
    if (choice.matches[i] == Match::kFailed) return Failure(choice.errors.at(i));
    if (choice.matches[i] == Match::kUnsupported)
      refuse(fmt::format("one of them {}", *devices_.candidates()[i].device->unsupported));
    if (choice.matches[i] == Match::kYes) choice.all.push_back(i);
  }
  choice.count = choice.all.size();
  return {};
}

Outcome Search::run(std::size_t most_tries) {
  if (!refusal_.empty()) return Outcome::kNone;
  order_.resize(devices_.candidates().size());
  std::iota(order_.begin(), order_.end(), 0);
  return run_in_order(most_tries);
}

Outcome Search::run_again(const std::vector<std::size_t>& order, bool only, std::size_t most_tries) {
  again_ = true;
  order_ = order;
  for (std::size_t i = 0; !only && i < devices_.candidates().size(); ++i)
    if (std::ranges::find(order, i) == order.end()) order_.push_back(i);
  return run_in_order(most_tries);
}

Outcome Search::run_in_order(std::size_t most_tries) {
  count_left();
  furthest_ = hopeless();
  if (furthest_ != nullptr) return Outcome::kNone;
  tries_left_ = most_tries;
  const auto outcome = from_claim(0);
  for (auto& devices : chosen_) devices.clear();
  if (outcome == Outcome::kFound)
    for (const auto& chosen : path_) chosen_[chosen.choice->claim].push_back(chosen);
  while (!path_.empty()) undo();
  return outcome;
}

Outcome Search::from_claim(std::size_t claim) {
  return claim == claims_.size() ? Outcome::kFound : from_request(claim, 0);
}

Outcome Search::from_request(std::size_t claim, std::size_t request) {
  if (request == choices_[claim].size()) {
    const auto outcome = from_claim(claim + 1);
    // With fewer devices of this claim the next one has no more.
    return outcome == Outcome::kTooMany ? Outcome::kNone : outcome;
  }
  auto result = Outcome::kTooMany;
  const auto& wishes = choices_[claim][request];
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (again_ && i != chosen_wishes_[claim][request]) continue;
    const auto outcome = from_device(wishes[i], 0, 0);
    if (outcome == Outcome::kTooMany) continue;
    if (outcome == Outcome::kFound) chosen_wishes_[claim][request] = i;
    if (outcome != Outcome::kNone) return outcome;
    result = outcome;
  }
  return result;
}

Outcome Search::from_device(const Choice& choice, std::size_t taken, std::size_t start) {
  if (choice.wish->all && choice.all.empty()) {
    if (is_as_far_as(choice, furthest_)) furthest_ = &choice;
    return Outcome::kNone;
  }
  if (taken == choice.count) return from_request(choice.claim, choice.request + 1);
  if (is_as_far_as(choice, furthest_)) furthest_ = &choice;
  const auto of_claim = std::ranges::count_if(
      path_, [&](const Chosen& chosen) { return chosen.choice->claim == choice.claim; });
  if (static_cast<std::size_t>(of_claim) + choice.count - taken > kMostDevicesOfClaim)
    return Outcome::kTooMany;
  if (choice.wish->all) return with_all(choice, taken);
  if (left_.at(&choice)[start] < choice.count - taken) return Outcome::kNone;
  std::vector<std::size_t> tried;
  for (auto place = start; place < order_.size(); ++place) {
    const auto candidate = order_[place];
    if (!devices_.is_free(candidate, choice.claim, choice.wish->admin)) continue;
    if (choice.matches[candidate] == Match::kFailed && !again_) {
      error_ = context(choice.errors.at(candidate),
                       fmt::format("{}: the request '{}'", words(choice.claim), choice.full_name));
      return Outcome::kStopped;
    }
    if (choice.matches[candidate] != Match::kYes || was_tried(tried, candidate)) continue;
    const auto outcome = with_one(choice, taken, candidate, place + 1);
    if (outcome != Outcome::kNone) return outcome;
    tried.push_back(candidate);
  }
  return Outcome::kNone;
}

Outcome Search::with_all(const Choice& choice, std::size_t taken) {
  return with_one(choice, taken, choice.all[taken], 0);
}

Outcome Search::with_one(const Choice& choice, std::size_t taken, std::size_t candidate, std::size_t next) {
  if (tries_left_ == 0) return Outcome::kStopped;
  --tries_left_;
  if (!choose(choice, candidate)) return Outcome::kNone;
  const auto outcome = from_device(choice, taken + 1, next);
  if (outcome != Outcome::kFound) undo();
  return outcome;
}

bool Search::choose(const Choice& choice, std::size_t candidate) {
  const auto& device = devices_.candidates()[candidate];
  if (untolerated(device.taints, choice.wish->tolerations) != nullptr) return false;
  const auto share = choice.shares.find(candidate);
  if (!devices_.take(candidate, choice.claim, choice.wish->admin,
                     share == choice.shares.end() ? nullptr : &share->second))
    return false;
  const auto& request = claims_[choice.claim]->spec->requests[choice.request];
  auto& constraints = constraints_[choice.claim];
  for (auto it = constraints.begin(); it != constraints.end(); ++it) {
    if (!it->concerns(request, *choice.wish) || it->add(device.kind())) continue;
    for (auto added = constraints.begin(); added != it; ++added)
      if (added->concerns(request, *choice.wish)) added->remove();
    devices_.give_back(candidate);
    return false;
  }
  path_.push_back({&choice, candidate});
  return true;
}

void Search::undo() {
  const auto [choice, candidate] = path_.back();
  path_.pop_back();
  for (auto& constraint : constraints_[choice->claim])
    if (constraint.concerns(claims_[choice->claim]->spec->requests[choice->request], *choice->wish))
      constraint.remove();
  devices_.give_back(candidate);
}

bool Search::could_have(const Choice& choice, std::size_t candidate) {
  if (choice.matches[candidate] != Match::kYes || !choose(choice, candidate)) return false;
  undo();
  return true;
}

bool Search::may_have(const Choice& choice, std::size_t candidate) const {
  const auto* const use = devices_.candidates()[candidate].use;
  return choice.matches[candidate] == Match::kYes &&
         (choice.wish->admin || use == nullptr || use->whole == 0);
}

/// How many devices each choice could have from a place on, if nothing else was chosen.
void Search::count_left() {
  left_.clear();
  for (const auto* choice : all_choices()) {
    auto& left = left_[choice];
    left.resize(order_.size() + 1, 0);
    for (auto place = order_.size(); place-- > 0;) {
      const auto candidate = order_[place];
      const auto fails = choice->matches[candidate] == Match::kFailed && !again_;  // it has to be come to
      left[place] = left[place + 1] + (fails ? kMostDevicesOfClaim : could_have(*choice, candidate) ? 1 : 0);
    }
  }
}

/// The first request for which there are too few devices, whatever the others have; nullptr where there is
/// none, or a selector fails: that has to be told.
const Choice* Search::hopeless() const {
  const auto all = all_choices();
  if (!again_ && !std::ranges::all_of(all, [](const auto* choice) { return choice->errors.empty(); }))
    return nullptr;
  const auto has_too_few = [&](const Choice& choice) {
    return choice.wish->all ? choice.all.empty() : left_.at(&choice).front() < choice.count;
  };
  for (const auto& by_request : choices_)
    for (const auto& by_wish : by_request)
      if (std::ranges::all_of(by_wish, has_too_few)) return &by_wish.front();
  return nullptr;
}

std::vector<const Choice*> Search::all_choices() const {
  std::vector<const Choice*> choices;
  for (const auto& by_request : choices_)
    for (const auto& by_wish : by_request)
      for (const auto& choice : by_wish) choices.push_back(&choice);
  return choices;
}

bool Search::was_tried(std::vector<std::size_t>& tried, std::size_t candidate) {
  if (tried.empty() || !devices_.candidates()[candidate].claims.empty()) return false;
  if (groups_.empty()) find_groups();
  return groups_[candidate] != 0 && std::ranges::any_of(tried, [&](std::size_t other) {
           return groups_[other] == groups_[candidate] && devices_.candidates()[other].claims.empty();
         });
}

/// In whatever way one of a group is chosen, another one could be in its place.
void Search::find_groups() {
  struct Traits {
    std::vector<Match> matches;
    std::vector<std::optional<cel::Attribute>> attributes;
    Taints taints;
    const CounterSets* consumes;
    std::size_t pool;
    auto operator<=>(const Traits&) const = default;
  };
  std::map<Traits, std::size_t> groups;
  const auto& candidates = devices_.candidates();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto& candidate = candidates[i];
    Traits traits{{}, {}, candidate.taints, candidate.device->consumes.get(), 0};
    if (traits.consumes != nullptr) traits.pool = candidate.pool;
    for (const auto* choice : all_choices()) traits.matches.push_back(choice->matches[i]);
    for (const auto& constraints : constraints_)
      for (const auto& state : constraints) {
        const auto* const value = attribute(candidate.kind(), state.constraint().attribute);
        traits.attributes.push_back(value == nullptr ? std::nullopt : std::optional(*value));
      }
    const auto alone = candidate.kind().shared || candidate.use != nullptr ||
                       std::ranges::find(traits.matches, Match::kFailed) != traits.matches.end();
    groups_.push_back(alone ? 0 : groups.try_emplace(std::move(traits), groups.size() + 1).first->second);
  }
}

std::string Search::reason() const {
  if (!refusal_.empty()) return refusal_;
  if (furthest_ == nullptr) return "nothing is asked for";
  return fmt::format("{}: the request '{}': {}", words(furthest_->claim), furthest_->full_name,
                     why_not(*furthest_));
}

std::string Search::why_not(const Choice& choice) const {
  for (const auto& pool : devices_.pools()) {
    if (pool.incomplete)
      return fmt::format("no devices are left, and the pool of '{}' is being updated", pool.key->driver);
    if (!pool.invalid.empty())
      return fmt::format("no devices are left, and the pool of '{}' cannot be used: it {}", pool.key->driver,
                         pool.invalid);
  }
  std::size_t matching = 0, untainted = 0, free = 0;
  const std::string* unsupported = nullptr;
  const auto& candidates = devices_.candidates();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (choice.matches[i] == Match::kUnsupported) unsupported = candidates[i].device->unsupported.get();
    if (choice.matches[i] != Match::kYes) continue;
    ++matching;
    if (untolerated(candidates[i].taints, choice.wish->tolerations) != nullptr) continue;
    ++untainted;
    if (may_have(choice, i)) ++free;
  }
  const auto wanted = std::max<std::size_t>(choice.count, 1);
  if (free < wanted && unsupported != nullptr) return fmt::format("a device that matches {}", *unsupported);
  if (matching == 0 && !choice.wish->capacity.empty())
    return fmt::format("no device matches of which parts are given by '{}'",
                       fmt::join(choice.wish->capacity | std::views::keys, "' and '"));
  if (matching == 0) return "no device matches";
  if (matching < wanted) return "too few devices match";
  if (untainted < wanted) return "devices that match have taints that it does not tolerate";
  if (free < wanted) return "devices that match are taken";
  return "free devices that match do not go together, or lack capacity";
}

}  // namespace drover::kube::scheduler
