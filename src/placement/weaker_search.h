#pragma once

// The search behind weaker.h.

#include "placement/weaker.h"

namespace drover::placement {

class WeakerSearch {
 public:
  WeakerSearch(const Cluster& cluster, const Gang& gang, const StartOf& start_of, std::size_t most)
      : cluster_(cluster), gang_(gang), start_of_(start_of), most_(most) {}

  /// Each adds what it finds, until there is enough.
  void relax_preferences();
  void give_up_kinds();
  void give_up_attributes();
  void ask_for_less();         // weaker_amounts.cc
  void ask_for_less_of_all();  // weaker_amounts.cc

  std::vector<Weaker> take() { return std::move(found_); }
  bool found() const { return !found_.empty(); }

  struct Amount;

 private:
  using Change = std::function<void(Request&)>;

  const Request& first() const { return gang_.members.front(); }
  const char* each() const { return gang_.members.size() > 1 ? " for each member" : ""; }

  Gang with(const Change& change) const;
  std::optional<std::vector<Decision>> start_of(const Gang& gang) const;
  bool starts(const Gang& gang) const { return start_of(gang).has_value(); }
  bool try_it(const std::string& remedy, const Gang& gang);
  void try_filter(void (*change)(DeviceFilter&), const char* remedy);
  void try_older_driver();
  void try_less(const Amount& amount);
  void try_smaller_gang();
  std::string models(const std::vector<Decision>& decisions) const;

  const Cluster& cluster_;
  const Gang& gang_;
  const StartOf& start_of_;
  std::size_t most_;
  std::vector<Weaker> found_;
};

}  // namespace drover::placement
