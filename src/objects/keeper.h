#pragma once

// Does what objects of a cluster define (definition.h), and keeps their status and tells their events.
// Objects in a namespace that is no user's are refused. What somebody changes of a definition behind its
// object's back is put right again after a while. Thread safe; works on threads of its own.
//
// Nothing is kept but in the objects and in the daemon's journal: whenever this ends, the next one goes on.

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/users.h"
#include "kube/client/informer.h"
#include "kube/events/event_recorder.h"
#include "objects/definition.h"

namespace drover::objects {

struct KeeperOptions {
  /// Asks the daemon, as that user. Called on the keeper's thread; ends soon after the stop is asked for.
  std::function<Result<Answer>(const User&, const Call&, const std::stop_token&)> ask;
  std::function<Result<User>(const std::string& name_space)> user_of;  ///< kNotFound when it is nobody's
  std::function<void(const std::string&)> log;   ///< what cannot be done, once until it is another
  std::chrono::milliseconds between{1000};       ///< looks at one object, and so writes of it
  std::chrono::milliseconds again{5000};         ///< what failed, and why a job waits
  std::chrono::milliseconds look_again{60'000};  ///< what was refused, or changed by others
};

class Keeper {
 public:
  /// Begins at once. `api` outlives it.
  Keeper(kube::Api& api, KeeperOptions options);
  /// Its end takes at most one request.
  ~Keeper() = default;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Something has happened to what this names (thing()). Does not block.
  void touch(const std::string& thing);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::shared_ptr<const Definition> definition;
    Clock::time_point due{};
    Clock::time_point not_before{};
  };
  using Entries = std::map<std::string, Entry>;  ///< by kind, namespace and name

  void changed(Kind kind, const kube::Change<Definition>& change);
  void run(const std::stop_token& stop);
  Entries::iterator first_due();
  /// Until it is to be looked at again.
  Result<std::chrono::milliseconds> look(Definition& definition, const std::stop_token& stop);
  Result<Known> ask_known(const User& user, const Definition& definition, const std::stop_token& stop);
  Result<std::optional<Refusal>> carry_out(const User& user, Definition& definition, Deed deed,
                                           const std::stop_token& stop);
  Status set_held(Definition& definition, bool held);
  Status write(Definition& definition, const Known& known, const std::optional<Refusal>& refusal);
  void note(const Status& done);

  kube::Api& api_;
  const KeeperOptions options_;
  kube::EventRecorder events_;
  std::string trouble_;  ///< told last; of the thread alone
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool news_ = false;
  Entries entries_;
  std::multimap<std::string, std::string> things_;  ///< to keys of entries
  // They go first: they call back.
  std::array<std::unique_ptr<kube::Informer<Definition>>, 3> informers_;
  std::jthread thread_;
};

}  // namespace drover::objects
