#pragma once

// What is offered to which framework of the Mesos API, for how long, and what they refused. All of it ends
// with their connections, so nothing is journaled. Pure: the time is handed in, by a clock that does not
// jump.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "control/agents.h"
#include "control/resource_amounts.h"
#include "control/state.h"

namespace drover::control {

/// What a task holds of the machine.
ResourceAmounts held_by(const TaskRecord& record);
/// What all tasks hold, whoever asked for them.
ResourceAmounts held_by_all(const State& state);
/// By framework.
std::map<std::string, ResourceAmounts> held_by_frameworks(const State& state);
/// By the id of the agent (agents.h).
std::map<std::string, ResourceAmounts> held_by_agents(const State& state);
/// By agent: what tasks hold that the books of no node have. These are ports, and all that those hold that
/// were launched on a node of a cluster and are not there yet.
std::map<std::string, ResourceAmounts> held_beside_books(const State& state);

/// Whom offers are made to.
struct Bidder {
  std::vector<std::string> roles{"*"};  ///< not empty; the first that is not suppressed gets the offers
  std::set<std::string> suppressed;     ///< of `roles`
  bool knows_gpus = false;
};

struct Offer {
  std::string framework;
  std::string role;
  std::string agent;
  ResourceAmounts amounts;
  TimePoint at{};
};

/// What is offered of, as offers see it.
struct Supply {
  struct Machine {
    ResourceAmounts whole;
    ResourceAmounts free;  ///< with what is offered
  };
  std::map<std::string, Machine> machines;      ///< by the id of its agent
  std::map<std::string, ResourceAmounts> used;  ///< by framework
  bool hides_gpu_machines = true;               ///< from those that do not know GPUs
};

/// What is to be told. At most one offer of each machine is made at a time.
struct OfferChanges {
  std::vector<std::pair<std::string, std::string>> rescinded;  ///< framework, offer
  std::vector<std::string> made;                               ///< ids of offers
  bool more_to_offer = false;                                  ///< there may be more to offer
};

/// What a framework took out of its offers.
struct TakenOffers {
  ResourceAmounts amounts;
  std::string role;
  std::string agent;
  std::string mistake;  ///< in the words of Mesos; "" when all are valid. What was valid is gone all the same
};

class OfferBook {
 public:
  /// Offers are called "<master>-O0" …
  explicit OfferBook(std::string master) : master_(std::move(master)) {}

  /// A new subscription: earlier filters and offers of that framework are gone.
  void join(const std::string& framework, Bidder bidder);
  /// Another description of one that is there: it keeps its filters and offers, but for those of roles that
  /// it has left. What is returned are the ids of these offers, which are gone.
  std::vector<std::string> change(const std::string& framework, Bidder bidder);
  /// Its offers and filters are gone.
  void leave(const std::string& framework);

  /// Makes offers fit to what is free, and offers all the rest of each machine to one framework, as Mesos
  /// does: to that which has least of all machines and has not refused it. One that sits on its offers of a
  /// machine for kUndisturbed while another waits loses all that it has.
  OfferChanges allocate(const Supply& supply, TimePoint now);

  /// Takes offers for an ACCEPT or a DECLINE.
  TakenOffers take(const std::string& framework, const std::vector<std::string>& ids);
  /// Nothing of the agent that the amounts cover is offered for so long. Seconds that are negative, or no
  /// number, are the default.
  void refuse(const std::string& framework, TakenOffers taken, double seconds, TimePoint now);
  /// No roles are all roles.
  void suppress(const std::string& framework, const std::vector<std::string>& roles);
  /// Also forgets what was refused.
  void revive(const std::string& framework, const std::vector<std::string>& roles);

  const std::map<std::string, Offer>& offers() const { return offers_; }
  /// Sums by framework.
  std::map<std::string, ResourceAmounts> offered() const;

  static constexpr double kDefaultRefuseSeconds = 5;
  static constexpr double kMostRefuseSeconds = 365.0 * 24 * 3600;
  static constexpr std::chrono::seconds kUndisturbed{30};

 private:
  struct Filter {
    std::string role;
    std::string agent;
    ResourceAmounts refused;
    TimePoint until{};
  };
  struct Entry {
    Bidder bidder;
    std::vector<Filter> filters;
  };

  using Machine = std::pair<const std::string, Supply::Machine>;
  /// The role that would be offered this of the machine; "" when none would.
  std::string role_wanting(const Entry& entry, const ResourceAmounts& amounts, const Machine& machine,
                           const Supply& supply, TimePoint now) const;
  void rescind_what_is_gone(const Supply& supply, OfferChanges& changes);
  void disturb_one(const Machine& machine, const ResourceAmounts& rest, const Supply& supply, TimePoint now,
                   OfferChanges& changes);
  void drop_offers_of(const std::string& framework, OfferChanges* changes);

  std::string master_;
  std::map<std::string, Entry> bidders_;
  std::map<std::string, Offer> offers_;
  std::uint64_t next_offer_ = 0;
};

}  // namespace drover::control
