#pragma once

// Where `drover top` looks: at the daemon, or without one at this machine's own driver. Blocks for as long as
// they do; used by one thread at a time.

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/client.h"
#include "cli/top/panels.h"

namespace drover::cli::top {

class Source {
 public:
  /// What /v1/gpus?usage=true would say of this machine, without a daemon.
  using GpusHere = std::function<Result<nlohmann::json>()>;
  enum class Whom {
    kDaemon,
    kHere,   ///< the driver alone
    kEither  ///< a daemon, and the driver as long as no daemon has ever answered
  };

  Source(Client client, bool of_this_machine, GpusHere here, Whom whom);

  /// One look at everything.
  Result<Snapshot> look();
  /// What people are told of it: "Task 1f3a was asked to end".
  std::string stop(const std::string& task, bool force) const;

 private:
  Result<Snapshot> look_at_daemon() const;
  Result<Snapshot> look_here() const;
  void name_users(Snapshot& snapshot);

  Client client_;
  bool of_this_machine_;
  GpusHere here_;
  Whom whom_;
  std::map<std::uint32_t, std::string> users_;  ///< names that were looked up
};

}  // namespace drover::cli::top
