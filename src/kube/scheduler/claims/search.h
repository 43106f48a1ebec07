#pragma once

// Looks for devices of one node for all requests of some claims: tries one after the other, and goes back
// where it cannot go on, so that it finds a way whenever there is one. The order is that of Kubernetes, in
// which the first way is taken. What is as good as something that was tried in vain is not tried. Pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/scheduler/claims/constraints.h"
#include "kube/scheduler/claims/node_devices.h"

namespace drover::kube::scheduler {

inline constexpr std::size_t kMostDevicesOfClaim = 32;

/// A wish of a request, and what each device is to it.
struct Choice {
  enum class Match : std::uint8_t {
    kNo,
    kYes,
    kFailed,      ///< a selector fails: who comes to it gives up
    kUnsupported  ///< it matches, but we give it to nobody
  };

  std::size_t claim = 0;
  std::size_t request = 0;
  const DeviceWish* wish = nullptr;
  const DeviceClass* device_class = nullptr;
  std::string full_name = {};
  std::vector<Selectors::Handle> selectors = {};  ///< of its class, then its own
  std::vector<Match> matches = {};                ///< by candidate
  std::map<std::size_t, Amounts> shares = {};     ///< of capacities, where they matter
  std::map<std::size_t, Error> errors = {};
  std::vector<std::size_t> all = {};  ///< candidates, where all are wanted
  std::size_t count = 0;
};

/// What a device was chosen for.
struct Chosen {
  const Choice* choice = nullptr;
  std::size_t candidate = 0;
};

class Search {
 public:
  using Claims = std::vector<const ResourceClaim*>;
  /// Which of a pod's claims these are.
  struct Numbers {
    std::size_t first = 0;
    std::size_t of = 1;  ///< so many that it has of its own
  };
  /// What reasons call a claim: not by its name, since of claims that are alike one answer is for all.
  static std::string words_of(const ResourceClaim& claim, std::size_t place, const Numbers& numbers);

  /// kInvalid, kNotFound and kUnsupported for what is wrong with the claims or their classes on every node.
  static Result<Search> prepare(const DevicePools& pools, const Node& node, const Claims& claims,
                                const Numbers& numbers);

  enum class Outcome {
    kFound,
    kNone,
    kTooMany,  ///< devices for one claim, whatever they are
    kStopped   ///< by an error, or because it takes too long
  };
  /// In Kubernetes' order.
  Outcome run(std::size_t most_tries);
  /// Once it has found something: other devices for the same wishes. In this order, and no other candidates
  /// where `only`. A device is passed over where a selector fails: Kubernetes would not have come to it.
  Outcome run_again(const std::vector<std::size_t>& order, bool only, std::size_t most_tries);

  /// Once it has found something: by claim, and by request which of its wishes.
  const std::vector<std::vector<Chosen>>& chosen() const { return chosen_; }
  const std::vector<std::vector<std::size_t>>& chosen_wishes() const { return chosen_wishes_; }
  /// Once it has stopped; nullptr when it has tried too often.
  const Error* error() const { return error_ ? &*error_ : nullptr; }
  /// Once it has found nothing: why not, in words.
  std::string reason() const;

  /// By claim, request and wish.
  const std::vector<std::vector<std::vector<Choice>>>& choices() const { return choices_; }
  const NodeDevices& devices() const { return devices_; }
  /// Whether the choice could have the candidate if nothing else was chosen.
  bool could_have(const Choice& choice, std::size_t candidate);

 private:
  Search(const DevicePools& pools, const Node& node, const Claims& claims, const Numbers& numbers);
  std::string words(std::size_t claim) const { return words_of(*claims_[claim], claim, numbers_); }

  Status prepare_claim(std::size_t claim);
  Result<Choice> prepare_choice(std::size_t claim, std::size_t request, const DeviceWish& wish);
  Choice::Match match(Choice& choice, std::size_t candidate);
  Result<bool> is_selected(const Choice& choice, const Candidate& candidate) const;
  Status gather_all(Choice& choice);

  Outcome run_in_order(std::size_t most_tries);
  Outcome from_claim(std::size_t claim);
  Outcome from_request(std::size_t claim, std::size_t request);
  Outcome from_device(const Choice& choice, std::size_t taken, std::size_t start);
  Outcome with_all(const Choice& choice, std::size_t taken);
  Outcome with_one(const Choice& choice, std::size_t taken, std::size_t candidate, std::size_t next);
  bool choose(const Choice& choice, std::size_t candidate);
  void undo();
  bool may_have(const Choice& choice, std::size_t candidate) const;
  void count_left();
  const Choice* hopeless() const;
  std::vector<const Choice*> all_choices() const;
  bool was_tried(std::vector<std::size_t>& tried, std::size_t candidate);
  void find_groups();
  std::string why_not(const Choice& choice) const;

  const DevicePools& pools_;
  Claims claims_;
  Numbers numbers_;
  NodeDevices devices_;
  std::vector<std::vector<std::vector<Choice>>> choices_;
  std::vector<std::vector<ConstraintState>> constraints_;  ///< by claim

  std::vector<std::size_t> order_;
  bool again_ = false;
  std::map<const Choice*, std::vector<std::size_t>> left_;  ///< how many may still be had from a place on
  std::vector<std::size_t> groups_;                         ///< of candidates that are as good; 0: of none
  std::vector<std::vector<Chosen>> chosen_;
  std::vector<std::vector<std::size_t>> chosen_wishes_;
  std::vector<Chosen> path_;
  const Choice* furthest_ = nullptr;
  std::string refusal_;  ///< why it need not even begin
  std::optional<Error> error_;
  std::size_t tries_left_ = 0;
};

}  // namespace drover::kube::scheduler
