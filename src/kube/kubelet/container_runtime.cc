#include "kube/kubelet/container_runtime.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kube/rpc/channel.h"
#include "protocol/container_runtime.grpc.pb.h"

namespace drover::kube {
namespace {

using Json = nlohmann::json;

struct Release {
  int major = 0, minor = 0;
  auto operator<=>(const Release&) const = default;
};
constexpr Release kContainerdKnowsCdi{1, 7};
constexpr Release kContainerdDoesCdi{2, 0};
constexpr Release kCrioDoesCdi{1, 23};
constexpr const char* kPodUidLabel = "io.kubernetes.pod.uid";

std::optional<Release> release_of(const std::string& version) {
  Release release;
  const auto* number = version.c_str() + (version.starts_with('v') ? 1 : 0);
  if (std::sscanf(number, "%d.%d", &release.major, &release.minor) != 2) return std::nullopt;
  return release;
}

std::optional<bool> says_cdi(std::string_view configuration) {
  const auto parsed = Json::parse(configuration, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  const auto found = parsed.find("enableCDI");
  if (found == parsed.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

using Service = runtime::v1::RuntimeService::Stub;

/// Asks the runtime at a socket, for so long at most altogether.
class Caller {
 public:
  Caller(const std::string& socket, std::chrono::milliseconds patience)
      : socket_(socket),
        deadline_(std::chrono::steady_clock::now() + patience),
        service_(connect_to(socket)) {}

  /// `what` it should do, for people.
  template <typename Request, typename Answer>
  Result<Answer> call(grpc::Status (Service::*method)(grpc::ClientContext*, const Request&, Answer*),
                      const Request& request, std::string_view what) const {
    grpc::ClientContext context;
    give_up_after(context,
                  std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now()));
    Answer answer;
    if (const auto status = (service_.*method)(&context, request, &answer); !status.ok())
      return fail(
          ErrorKind::kUnavailable,
          fmt::format("the container runtime does not {} at '{}': {}", what, socket_, why_failed(status)),
          "name its socket with --runtime-endpoint");
    return answer;
  }

 private:
  const std::string& socket_;
  std::chrono::steady_clock::time_point deadline_;
  mutable Service service_;
};

template <typename Map>
std::string value_of(const Map& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? "" : found->second;
}

std::string label_of(const runtime::v1::Container& container, const std::string& name) {
  return value_of(container.labels(), name);
}

Status kill_by(const Caller& caller, const std::string& id) {
  runtime::v1::StopContainerRequest stop;  // without a time to end by itself
  stop.set_container_id(id);
  return caller.call(&Service::StopContainer, stop, "kill a container").map([](const auto&) {});
}

CdiSupport support_of(bool does) {
  return does ? CdiSupport::kYes : CdiSupport::kNo;
}

}  // namespace

ContainerRuntime judge_runtime(std::string name, std::string version, std::string_view configuration) {
  ContainerRuntime runtime{std::move(name), std::move(version), CdiSupport::kUnknown, ""};
  const auto release = release_of(runtime.version);
  if (runtime.name == "cri-o" && release) {
    runtime.cdi = support_of(*release >= kCrioDoesCdi);
    if (runtime.cdi == CdiSupport::kNo) runtime.advice = "CRI-O does CDI from 1.23 on: upgrade it";
  } else if (runtime.name == "containerd" && release) {
    const auto says = says_cdi(configuration);
    if (*release < kContainerdKnowsCdi)
      runtime.cdi = CdiSupport::kNo;
    else if (says || *release >= kContainerdDoesCdi)
      runtime.cdi = support_of(says.value_or(true));
    if (runtime.cdi != CdiSupport::kYes)
      runtime.advice = *release < kContainerdKnowsCdi
                           ? "containerd does CDI from 1.7 on: upgrade it"
                           : "set 'enable_cdi = true' in containerd's configuration of the CRI plugin";
  }
  return runtime;
}

Result<ContainerRuntime> ask_runtime(const std::string& socket, std::chrono::milliseconds patience) {
  const Caller caller(socket, patience);
  DROVER_TRY(const auto version,
             caller.call(&Service::Version, runtime::v1::VersionRequest(), "tell what it is"));
  runtime::v1::StatusRequest request;
  request.set_verbose(true);
  DROVER_TRY(const auto answer, caller.call(&Service::Status, request, "tell what it is"));
  const auto configuration = answer.info().find("config");
  return judge_runtime(version.runtime_name(), version.runtime_version(),
                       configuration == answer.info().end() ? "" : configuration->second);
}

Result<std::vector<RunningContainer>> list_containers(const std::string& socket,
                                                      std::chrono::milliseconds patience) {
  runtime::v1::ListContainersRequest request;
  request.mutable_filter()->mutable_state()->set_state(runtime::v1::CONTAINER_RUNNING);
  DROVER_TRY(const auto answer,
             Caller(socket, patience).call(&Service::ListContainers, request, "tell what it runs"));
  std::vector<RunningContainer> containers;
  for (const auto& container : answer.containers()) {
    RunningContainer running{container.id(),
                             label_of(container, "io.kubernetes.pod.namespace"),
                             label_of(container, "io.kubernetes.pod.name"),
                             label_of(container, "io.kubernetes.container.name"),
                             label_of(container, kPodUidLabel),
                             value_of(container.annotations(), kReplicaAnnotation)};
    if (container.state() == runtime::v1::CONTAINER_RUNNING && !running.pod.empty())
      containers.push_back(std::move(running));
  }
  return containers;
}

Result<std::map<PodName, std::string>> list_pod_uids(const std::string& socket,
                                                     std::chrono::milliseconds patience) {
  runtime::v1::ListPodSandboxRequest request;
  request.mutable_filter()->mutable_state()->set_state(runtime::v1::SANDBOX_READY);
  DROVER_TRY(const auto answer,
             Caller(socket, patience).call(&Service::ListPodSandbox, request, "tell its pods"));
  std::map<PodName, std::string> uids;
  for (const auto& pod : answer.items())
    uids[{pod.metadata().namespace_(), pod.metadata().name()}] = pod.metadata().uid();
  return uids;
}

Status kill_pod(const std::string& socket, const std::string& uid, std::chrono::milliseconds patience) {
  const Caller caller(socket, patience);
  runtime::v1::ListContainersRequest request;
  request.mutable_filter()->mutable_state()->set_state(runtime::v1::CONTAINER_RUNNING);
  (*request.mutable_filter()->mutable_label_selector())[kPodUidLabel] = uid;
  DROVER_TRY(const auto answer, caller.call(&Service::ListContainers, request, "tell what it runs"));
  Status all;
  for (const auto& container : answer.containers()) {
    if (container.state() != runtime::v1::CONTAINER_RUNNING || label_of(container, kPodUidLabel) != uid)
      continue;
    if (const auto killed = kill_by(caller, container.id()); !killed) all = killed;
  }
  return all;
}

Status kill_container(const std::string& socket, const std::string& id, std::chrono::milliseconds patience) {
  return kill_by(Caller(socket, patience), id);
}

}  // namespace drover::kube
