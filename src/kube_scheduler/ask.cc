#include "kube_scheduler/ask.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/scheduling/cluster_answers.h"
#include "kube/scheduling/cluster_reading.h"
#include "kube/scheduling/planned_pods.h"
#include "kube_scheduler/options.h"

namespace drover {
namespace {

using nlohmann::json;

class Question {
 public:
  explicit Question(const cli::KubeClusterOptions& options) : options_(scheduler_options(options, {})) {}

  Status connect(const std::string& kubeconfig) {
    ::signal(SIGPIPE, SIG_IGN);
    DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(kubeconfig)));
    if (!config.name_space.empty()) name_space_ = config.name_space;
    DROVER_TRY(api_, kube::ApiClient::open(std::move(config)));
    DROVER_TRY(options_.version, kube::server_version(*api_));
    scheduler_ = std::make_unique<kube::scheduler::Scheduler>(options_);
    return {};
  }

  Status read() {
    return kube::read_cluster(
        *api_,
        {.version = options_.version, .warn = [this](const std::string& said) { warnings_.push_back(said); }},
        *scheduler_);
  }

  kube::ClusterAnswers answers() { return {*scheduler_, options_, wall_clock()}; }
  json with_warnings(json answer) const {
    if (!warnings_.empty()) answer["warnings"] = warnings_;
    return answer;
  }

  kube::Api& api() { return *api_; }
  kube::scheduler::Scheduler& scheduler() { return *scheduler_; }
  const kube::ServerVersion& version() const { return options_.version; }
  /// Of what names none.
  const std::string& name_space() const { return name_space_; }

 private:
  kube::scheduler::SchedulerOptions options_;
  std::string name_space_ = "default";
  std::unique_ptr<kube::ApiClient> api_;
  std::unique_ptr<kube::scheduler::Scheduler> scheduler_;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<json> explain_on_cluster(const cli::KubeClusterOptions& options, const std::string& pod) {
  Question question(options);
  DROVER_CHECK_OK(question.connect(options.kubeconfig));
  const auto slash = pod.find('/');
  const auto name_space = slash == std::string::npos ? question.name_space() : pod.substr(0, slash);
  const auto name = slash == std::string::npos ? pod : pod.substr(slash + 1);
  DROVER_TRY(const auto object, question.api().get({kube::kPods, name_space, name}));
  if (const auto phase = kube::text_at(object, "/status/phase"); phase == "Succeeded" || phase == "Failed")
    return json{{"pod", name_space + "/" + name}, {"state", "ended"}, {"message", "It has ended: " + phase}};
  DROVER_CHECK_OK(question.read());
  const auto uid = question.scheduler().uid_of(name_space, name);
  if (uid.empty())
    return fail(ErrorKind::kNotFound, "The pod '" + name_space + "/" + name + "' has ended meanwhile");
  return question.with_warnings(question.answers().of_pod(uid));
}

Result<json> plan_on_cluster(const cli::KubeClusterOptions& options, const std::vector<json>& pods) {
  Question question(options);
  DROVER_CHECK_OK(question.connect(options.kubeconfig));
  DROVER_CHECK_OK(question.read());
  DROVER_TRY(const auto uids, kube::plan_pods(question.api(), pods, question.name_space(), question.version(),
                                              question.scheduler()));
  const auto answers = question.answers();
  json planned = json::array();
  for (const auto& uid : uids) planned.push_back(answers.of_pod(uid));
  const bool starts = std::ranges::all_of(planned, [](const json& pod) { return pod["state"] == "starts"; });
  return question.with_warnings({{"starts_now", starts}, {"pods", std::move(planned)}});
}

Result<json> queues_on_cluster(const cli::KubeClusterOptions& options) {
  Question question(options);
  DROVER_CHECK_OK(question.connect(options.kubeconfig));
  DROVER_CHECK_OK(question.read());
  return question.with_warnings(question.answers().of_queues());
}

}  // namespace drover
