#pragma once

// The allocations that the journal keeps: sums them up for who asks, and removes those that are too old or
// too many. Both are done in small steps between commits, which wait for one step at most; one report is made
// after the other. Owned by the control strand.

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "base/log_once.h"
#include "engine/event_loop.h"
#include "engine/report.h"

namespace drover::engine {

using ReportTaker = std::function<void(Result<Report>)>;

class KeptAllocations {
 public:
  /// Both outlive this and what it has on the journal's thread.
  KeptAllocations(const Ports& ports, EventLoop& loop)
      : limits_(ports.allocations), ports_(ports), loop_(loop), trouble_(ports.log) {}

  /// Of this user alone, or of all; `active` is what is under way of them. kUnavailable when too many reports
  /// of the one who asks are waited for.
  void report(const ReportQuery& query, std::optional<uid_t> owner, uid_t asker,
              const std::vector<store::Allocation>& active, ReportTaker done);
  /// Whoever waits for his turn gets this.
  void refuse(const Error& error);
  /// To be called now and then.
  void tidy();

 private:
  struct Reading {
    std::optional<uid_t> owner;
    uid_t asker = 0;
    ReportSums sums;
    std::uint64_t reached = 0;  ///< number of an allocation
    ReportTaker done;
  };

  void read_next();
  void read_on(const std::shared_ptr<Reading>& reading);

  const store::AllocationLimits limits_;
  const Ports& ports_;
  EventLoop& loop_;
  LogOnce trouble_;
  std::deque<std::shared_ptr<Reading>> waiting_;
  bool reading_ = false;
  bool trimming_ = false;
};

}  // namespace drover::engine
