#pragma once

// The threads beside the control strand. What may block or takes long is done there, apart by what it waits
// for: so nobody's slow disk, long removal or silent name service holds up what has nothing to do with it,
// and nobody's share of the threads is more than another user's. The keys are uids of callers.

#include "api/identities.h"
#include "base/fair_pool.h"

namespace drover::api {

struct Workers {
  explicit Workers(boost::asio::io_context& context) : users(context) {}

  FairPool files{{.threads = 16, .at_once = 2, .waiting = 1024}};
  FairPool lists{{.threads = 2, .at_once = 1, .waiting = 1024}};  ///< writing long answers; never blocks
  /// Reading what users submit, and writing what became of it; never blocks. Nothing is turned away: what was
  /// accepted is to be told.
  FairPool submissions{{.threads = 2, .at_once = 1, .waiting = 1u << 20}};
  FairPool removals{{.threads = 16, .at_once = 1, .waiting = 64}};       ///< of images
  FairPool endings{{.threads = 32, .at_once = 4, .waiting = 1u << 20}};  ///< of commands in containers
  /// What would become of work. One at a time: on a cluster each reads all of it.
  FairPool plans{{.threads = 1, .at_once = 1, .waiting = 16}};
  Identities users;

  /// FairPool::stop() of all, as long as there still is what they answer to.
  void stop() {
    for (auto* pool : {&files, &lists, &submissions, &removals, &endings, &plans}) pool->stop();
    users.stop();
  }
};

}  // namespace drover::api
