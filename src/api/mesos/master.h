#pragma once

// The master of the Mesos API: who is subscribed, what is offered to whom, and what is told until it is
// acknowledged. All that must outlive the daemon is in the control state; what is here ends with the
// connections. Used on the control strand only.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/http.h"
#include "api/mesos/executors.h"
#include "api/mesos/media_type.h"
#include "base/pause.h"
#include "control/agents.h"
#include "control/offers.h"
#include "engine/api.h"
#include "engine/listeners.h"

namespace mesos::v1 {
class ExecutorInfo;
class FrameworkInfo;
class AgentInfo;
class MasterInfo;
class Offer_Operation;
class TaskInfo;
class TaskStatus;
namespace scheduler {
class Call;
class Call_Shutdown;
class Event;
}  // namespace scheduler
}  // namespace mesos::v1

namespace drover::api::mesos {

struct Agent;
class Stream;
struct LaunchContext;
using Call = ::mesos::v1::scheduler::Call;
using Event = ::mesos::v1::scheduler::Event;
using Operation = ::mesos::v1::Offer_Operation;

/// What Mesos says it is.
inline constexpr const char* kMesosVersion = "1.12.0";

struct MasterOptions {
  /// Frameworks that do not know GPUs get no offers of a machine that has some.
  bool filter_gpu_resources = true;
  std::string hostname = "localhost";
  std::string ip = "127.0.0.1";
  int port = 5050;
  std::string executor_endpoint;   ///< where executors reach it: "127.0.0.1:5050"; "": they cannot
  bool executors_in_pods = false;  ///< with networks of their own
};

using control::ResourceAmounts;

/// One task, or those of a group, out of an operation.
struct Launch {
  std::vector<const ::mesos::v1::TaskInfo*> infos;
  std::string executor;  ///< of a group
  bool in_group = false;
  const ::mesos::v1::ExecutorInfo* own = nullptr;  ///< the framework's, that is to run them
};

/// Users by the names that tasks give, looked up before.
using Users = std::map<std::string, User>;

/// A master as frameworks and operators are told of it.
::mesos::v1::MasterInfo describe(const std::string& master_id, const MasterOptions& options);

class Master {
 public:
  Master(boost::asio::io_context& context, engine::Api& daemon, MasterOptions options);
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  /// Nothing happens any more: that connections end now says nothing about frameworks.
  void stop();

  // What is given to these outlives them.
  /// The answer to SUBSCRIBE: always 200, also for a stream of one ERROR.
  asio::awaitable<Response> subscribe(const engine::Caller& caller, const Call& call, MediaType type);
  /// Every other call. `stream_id`: the header, "" for none.
  asio::awaitable<Response> call(const engine::Caller& caller, const Call& call, const std::string& stream_id,
                                 const Users& users);
  /// Names of users that the tasks of an ACCEPT run as.
  std::set<std::string> users_of(const engine::Caller& caller, const Call& call) const;

  const std::string& id() const { return daemon_.state().journal_id; }
  /// Of a machine; of a cluster one that no node has.
  std::string agent_id() const { return control::agent_id(id()); }
  /// Of the frameworks that stand for the apps of Marathon and for the schedules of Chronos.
  std::string marathon_id() const { return control::marathon_id(id()); }
  std::string chronos_id() const { return control::chronos_id(id()); }
  /// When it became the master, as the daemon's clock has it.
  TimePoint started_at() const { return started_at_; }
  const MasterOptions& options() const { return options_; }
  /// What is offered at the moment, by framework.
  std::map<std::string, ResourceAmounts> offered() const { return book_.offered(); }
  const control::OfferBook& book() const { return book_; }
  Executors& executors() { return executors_; }
  /// Ids of the frameworks that are subscribed.
  std::set<std::string> connected() const;
  ::mesos::v1::AgentInfo describe_agent(const control::ExecutorRecord& executor) const;

  /// Whoever wants to hear that a framework subscribed or described itself anew, until the returned handle
  /// dies.
  using FrameworkListener = std::function<void(const std::string& framework, const bool& is_new)>;
  std::shared_ptr<void> watch_frameworks(FrameworkListener listener) {
    return watchers_.add(std::move(listener));
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Unacknowledged {
    std::string uuid;
    Clock::time_point again{};
    Backoff pauses{std::chrono::seconds(10), std::chrono::minutes(10)};  ///< as Mesos' own agents
  };
  struct Subscriber {
    std::string id;  ///< a UUID: Mesos-Stream-Id
    std::shared_ptr<Stream> stream;
    bool knows_refinement = false;
    bool knows_roles = false;                              ///< MULTI_ROLE: offers say which role they are for
    std::map<std::string, Unacknowledged> unacknowledged;  ///< by task: sent, not acknowledged
  };

  std::shared_ptr<Stream> open_stream(MediaType type);
  Response refuse_subscription(MediaType type, std::string message);
  void close(const std::string& framework, const std::string& error);
  void gone(const std::string& framework, const std::shared_ptr<Stream>& stream);

  void on_notice(const control::Notice& notice);
  void send_next_update(const std::string& framework, const std::string& task_id);
  void send_all_updates(const std::string& framework);
  void send_failure(const control::notice::ExecutorEnded& ended);
  void forward_message(const control::ExecutorRecord& executor, const std::string& data);
  void send_status(Subscriber& subscriber, const ::mesos::v1::TaskStatus& status);
  /// One that is not kept: without uuid, from the master.
  struct Passing {
    std::string task_id;
    std::string agent;  ///< "" where nobody knows
    std::string state;
    std::string reason;
    std::string message;
    const control::FrameworkTask* task = nullptr;  ///< what is known of it, if it is there
  };
  void send_passing(const std::string& framework, const Passing& passing);
  /// The agent of a framework's task.
  std::string agent_of(const control::FrameworkTask& task) const;

  void allocate_soon();
  void allocate();
  control::Supply supply(const std::vector<Agent>& agents) const;
  /// Offers of one framework.
  void send_offers(const std::string& framework, const std::vector<std::string>& ids,
                   const std::vector<Agent>& agents);
  void add_offer(const std::string& id, const Agent& agent, const Subscriber& subscriber,
                 const std::set<std::string>& executors, Event& event) const;
  void send_rescind(const std::string& framework, const std::string& offer);
  void tick();

  /// A call that its framework may make.
  asio::awaitable<Response> obey(const engine::Caller& caller, const Call& call, MediaType type,
                                 const Users& users);
  /// The answer to a call that asks for what `run` does in a transaction.
  asio::awaitable<Response> keep(std::function<void()> run);
  asio::awaitable<Response> update_framework(const engine::Caller& caller, const Call& call);
  asio::awaitable<void> accept(const std::string& framework, const Call& call, const Users& users);
  /// Those that follow are for transactions.
  /// Takes what it uses from `left`, which is what is left of `offered`.
  Status launch(const std::string& framework, const Launch& launch, const control::TakenOffers& offered,
                ResourceAmounts& left, const Users& users);
  Status launch_tasks(const Launch& launch, const LaunchContext& context, ResourceAmounts& left);
  Status launch_on_executor(const Launch& launch, const LaunchContext& context, ResourceAmounts& left);
  void acknowledge(const std::string& framework, const Call& call);
  void kill(const std::string& framework, const Call& call);
  void shut_down(const std::string& framework, const ::mesos::v1::scheduler::Call_Shutdown& wanted);

  void refuse_launch(const std::string& framework, const Launch& launch, const Error& why);
  void drop_launch(const std::string& framework, const Launch& launch, const std::string& reason,
                   const std::string& message);
  void refuse_operation(const std::string& framework, const Operation& operation,
                        const control::TakenOffers& offered);
  void decline(const std::string& framework, const Call& call);
  void force_later(const std::string& id, std::chrono::milliseconds grace);
  void reconcile(const std::string& framework, const Call& call);
  /// `agent`: where the framework believes the task to be; "" when it does not say.
  void reconcile_one(const std::string& framework, const std::string& task_id, const std::string& agent);

  boost::asio::io_context& context_;
  engine::Api& daemon_;
  MasterOptions options_;
  TimePoint started_at_{};
  std::map<std::string, Subscriber> subscribers_;
  control::OfferBook book_;
  Executors executors_;
  bool allocation_due_ = false;
  int accepting_ = 0;  ///< offers that are taken, of which the state does not tell yet
  boost::asio::steady_timer timer_;
  /// By Drover's ids: tasks that are to be killed sooner than they say themselves.
  std::map<std::string, boost::asio::steady_timer> escalations_;
  std::shared_ptr<void> watch_;
  engine::Listeners<std::string, bool> watchers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< for callbacks that may come too late
};

}  // namespace drover::api::mesos
