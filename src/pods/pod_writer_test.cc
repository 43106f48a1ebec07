#include "pods/pod_writer.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "kube/scheduler/gpu_request.h"
#include "pods/pod_place.h"
#include "pods/pod_view.h"
#include "pods/testing/tasks.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using workload::Task;

const PodSettings kSettings{.journal = "j"};

Task task() {
  auto task = testing::task_of_ann("6fcb514b0d1c", 2);
  task.command = std::vector<std::string>{"python3", "train.py"};
  task.user.groups = {4, 20};
  task.grace = std::chrono::milliseconds(2500);
  return task;
}

json written(const Task& task, const PodSettings& settings = kSettings,
             const std::map<std::string, std::string>& environment = {}) {
  const auto pod = write_pod({task, 3, environment}, settings);
  if (pod) return *pod;
  ADD_FAILURE() << pod.error().front().message;
  return {};
}

std::vector<std::string> refused(const Task& task, const PodSettings& settings = kSettings) {
  const auto pod = write_pod({task, 0, {}}, settings);
  std::vector<std::string> paths;
  if (!pod)
    for (const auto& error : pod.error()) paths.push_back(error.path);
  return paths;
}

TEST(PodWriter, InputEndsWithItsConnectionUnlessItIsATerminal) {
  const auto container_of = [](const workload::Task& task) {
    return written(task).at("spec").at("containers").at(0);
  };
  auto asks = task();
  EXPECT_FALSE(container_of(asks).contains("stdin"));
  asks.takes_input = true;
  EXPECT_EQ(container_of(asks).at("stdinOnce"), true);
  EXPECT_EQ(container_of(asks).at("tty"), false);
  asks.terminal = workload::Terminal{};
  EXPECT_EQ(container_of(asks).at("stdinOnce"), false);
  EXPECT_EQ(container_of(asks).at("tty"), true);
}

TEST(PodWriter, AsksForExactlyWhatTheTaskIsToHave) {
  const auto pod = written(task());
  EXPECT_EQ(pod["metadata"]["name"], "6fcb514b0d1c-3");
  EXPECT_EQ(pod["metadata"]["namespace"], "drover-ann");
  EXPECT_EQ(pod["metadata"]["finalizers"], json::array({kFinalizer}));
  EXPECT_EQ(pod["spec"]["schedulerName"], "drover");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(pod["spec"]["terminationGracePeriodSeconds"], 3);
  const auto& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["args"], json::array({"python3", "train.py"}));
  EXPECT_EQ(container["resources"]["requests"], container["resources"]["limits"]);
  EXPECT_EQ(container["resources"]["limits"],
            json::parse(R"({"cpu":"1500m","memory":"1073741824","nvidia.com/gpu":"2"})"));
  EXPECT_EQ(container["workingDir"], "/mnt/mesos/sandbox");
}

TEST(PodWriter, WhatItWritesIsReadAsWaitingForANode) {
  const auto view = read_pod(written(task()));
  EXPECT_EQ(view.task, "6fcb514b0d1c");
  EXPECT_EQ(view.attempt, 3);
  EXPECT_EQ(view.journal, "j");
  EXPECT_EQ(view.name, pod_name(view.task, view.attempt));
  EXPECT_EQ(view.actual, Actual::kUnplaced);
}

TEST(PodWriter, RunsAsTheTasksUserAndGainsNothing) {
  const auto pod = written(task());
  const auto& rights = pod["spec"]["securityContext"];
  EXPECT_EQ(rights["runAsUser"], 1000);
  EXPECT_EQ(rights["runAsGroup"], 1001);
  EXPECT_EQ(rights["supplementalGroups"], json::array({4, 20}));
  EXPECT_EQ(rights["seccompProfile"]["type"], "RuntimeDefault");
  EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false);
  const auto& own = pod["spec"]["containers"][0]["securityContext"];
  EXPECT_EQ(own["allowPrivilegeEscalation"], false);
  EXPECT_EQ(own["runAsNonRoot"], true);
  EXPECT_EQ(own["capabilities"]["drop"], json::array({"ALL"}));
}

TEST(PodWriter, SecretsStandBesideThePod) {
  const std::map<std::string, std::string> environment{{"A", "open"}, {"TOKEN", "hidden$"}};
  const auto pod =
      write_pod({.task = task(), .attempt = 3, .environment = environment, .secrets = {"TOKEN"}}, kSettings)
          .value();
  EXPECT_EQ(pod.dump().find("hidden"), std::string::npos);
  const auto& variables = pod["spec"]["containers"][0]["env"];
  const auto given = std::ranges::find(variables, "TOKEN", [](const json& one) { return one["name"]; });
  ASSERT_NE(given, variables.end());
  EXPECT_EQ((*given)["valueFrom"]["secretKeyRef"], json::parse(R"({"name":"6fcb514b0d1c-3","key":"TOKEN"})"));
  auto secret = write_secret(pod, {{"TOKEN", "hidden$"}});
  EXPECT_EQ(secret["metadata"]["name"], "6fcb514b0d1c-3");
  EXPECT_EQ(secret["metadata"]["namespace"], "drover-ann");
  EXPECT_EQ(secret["stringData"]["TOKEN"], "hidden$");
  EXPECT_FALSE(secret["metadata"].contains("ownerReferences"));
  auto made = pod;
  made["metadata"]["uid"] = "u";
  EXPECT_EQ(write_secret(made, {})["metadata"]["ownerReferences"][0]["uid"], "u");
}

TEST(PodWriter, WhoTakesNodesAwayLeavesWorkAloneAndInstancesNot) {
  const auto* const annotation = "karpenter.sh/do-not-disrupt";
  EXPECT_EQ(written(task())["metadata"]["annotations"][annotation], "true");
  auto instance = task();
  instance.origin = {.kind = workload::OriginKind::kService, .name = "/web"};
  EXPECT_FALSE(written(instance)["metadata"]["annotations"].contains(annotation));
}

TEST(PodWriter, ASandboxThatStaysIsOnANodeThatKeepsIt) {
  EXPECT_TRUE(written(task())["spec"]["volumes"][0].contains("emptyDir"));
  auto settings = kSettings;
  settings.node_sandboxes = true;
  const std::map<std::string, std::string> none;
  const auto pod = write_pod({task(), 0, none}, settings).value();
  EXPECT_EQ(pod["spec"]["volumes"][0]["csi"],
            json::parse(R"({"driver":"sandbox.drover.dev","volumeAttributes":{"owner":"1000:1001"}})"));
  EXPECT_EQ(pod["spec"]["nodeSelector"], json::parse(R"({"sandbox.drover.dev/ready":"true"})"));
}

TEST(PodWriter, QueuesGangsAndPrioritiesAreThoseOfTheScheduler) {
  auto member = task();
  member.queue = "research/vision";
  member.priority = -5;
  member.gang = workload::GangMembership{"g1", 2, 4, workload::Arrangement::kSpread};
  const auto pod = written(member);
  const auto& labels = pod["metadata"]["labels"];
  EXPECT_EQ(labels["drover/queue"], "research.vision");
  EXPECT_EQ(labels["drover/gang"], "g1");
  EXPECT_EQ(labels["drover/gang-rank"], "2");
  EXPECT_EQ(pod["metadata"]["annotations"]["drover/gang-size"], "4");
  EXPECT_EQ(pod["metadata"]["annotations"]["drover/gang-arrangement"], "spread");
  EXPECT_EQ(pod["spec"]["priorityClassName"], "drover-minus-5");
  EXPECT_FALSE(written(task())["spec"].contains("priorityClassName"));
}

TEST(PodWriter, PortsThatAreNotNamedAreThePodsOwn) {
  auto server = task();
  server.network = {.ports = {{}, {}}};
  const std::map<std::string, std::string> none;
  auto pod = write_pod({server, 0, none, {31007, 31008}}, kSettings).value();
  EXPECT_FALSE(pod["spec"].contains("hostNetwork"));
  EXPECT_EQ(
      pod["spec"]["containers"][0]["ports"],
      json::parse(R"([{"containerPort":31007,"protocol":"TCP"},{"containerPort":31008,"protocol":"TCP"}])"));
  server.network.ports[1].host_port = 9000;
  pod = write_pod({server, 0, none, {31007, 9000}}, kSettings).value();
  EXPECT_EQ(pod["spec"]["hostNetwork"], true) << "who names a port of the machine is found there";
}

TEST(PodWriter, TheMembersOfAGangFindTheFirstOneByAName) {
  auto first = task();
  first.gang = workload::GangMembership{"6fcb514b0d1c", 0, 2, workload::Arrangement::kPack};
  auto pod = written(first);
  pod["metadata"]["uid"] = "u-7";
  const auto service = write_gang_service(pod);
  EXPECT_EQ(gang_address("6fcb514b0d1c", "drover-ann"), "drover-6fcb514b0d1c.drover-ann.svc");
  EXPECT_EQ(service["metadata"]["name"], "drover-6fcb514b0d1c");
  EXPECT_EQ(service["metadata"]["namespace"], "drover-ann");
  EXPECT_EQ(service["metadata"]["ownerReferences"][0]["uid"], "u-7");
  for (const auto& [label, value] : service["spec"]["selector"].items())
    EXPECT_EQ(pod["metadata"]["labels"][label], value);
}

TEST(PodWriter, PortsVolumesAndPlaces) {
  auto other = task();
  other.network = {workload::NetworkMode::kBridge,
                   {{.protocol = workload::PortProtocol::kBoth, .container_port = 80, .host_port = 8080}}};
  other.volumes = std::vector<workload::Volume>{{"data", "/srv/data", true}};
  other.resources.attributes = {{"hostname", {"a", "b"}}, {"rack", {"r7"}}};
  other.read_only = true;
  EXPECT_THAT(refused(other), ElementsAre("/volumes"));
  auto settings = kSettings;
  settings.host_paths = true;
  const auto pod = written(other, settings);
  const auto& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["ports"], json::parse(R"([{"containerPort":80,"hostPort":8080,"protocol":"TCP"},
                                                {"containerPort":80,"hostPort":8080,"protocol":"UDP"}])"));
  EXPECT_FALSE(pod["spec"].contains("hostNetwork"));
  EXPECT_EQ(container["volumeMounts"][1],
            json::parse(R"({"name":"host-1","mountPath":"/mnt/mesos/sandbox/data","readOnly":true})"));
  EXPECT_EQ(pod["spec"]["volumes"][1]["hostPath"]["path"], "/srv/data");
  EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
  const auto& terms = pod["spec"]["affinity"]["nodeAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  EXPECT_EQ(terms[0]["matchExpressions"][0],
            json::parse(R"({"key":"kubernetes.io/hostname","operator":"In","values":["a","b"]})"));
}

TEST(PodWriter, FilesAreBroughtBeforeItBeginsWithItsRights) {
  auto settings = kSettings;
  settings.helper_image = "drover:1";
  auto fetching = task();
  fetching.fetch = std::vector<workload::Fetch>{{.uri = "http://x/$(HOME)/y.tgz"}};
  const auto pod = written(fetching, settings);
  const auto& files = pod["spec"]["initContainers"][0];
  EXPECT_EQ(files["image"], "drover:1");
  EXPECT_EQ(files["securityContext"], pod["spec"]["containers"][0]["securityContext"]);
  EXPECT_EQ(files["volumeMounts"][0], pod["spec"]["containers"][0]["volumeMounts"][0]);
  EXPECT_EQ(files["resources"]["limits"], (json{{"cpu", "1500m"}, {"memory", std::to_string(1U << 30)}}));
  EXPECT_THAT(files["env"][0]["value"].get<std::string>(), ::testing::HasSubstr("$$(HOME)"));
  EXPECT_THAT(refused(fetching), ElementsAre("/fetch")) << "nobody could";
  fetching.fetch = std::vector<workload::Fetch>{{.uri = "/home/ann/data"}};
  EXPECT_THAT(refused(fetching, settings), ElementsAre("/fetch"));
}

TEST(PodWriter, SaysWhatItsGpusMustBeLike) {
  const auto annotation = std::string(kube::scheduler::kGpuRequestAnnotation);
  auto choosy = task();
  EXPECT_FALSE(written(choosy)["metadata"]["annotations"].contains(annotation));
  choosy.resources.gpus = {{1, {.models = {"A100"}, .min_memory_bytes = 8ULL << 30}}, {2, {.ecc = true}}};
  choosy.resources.interconnect.min_nvlinks = 2;
  const auto pod = written(choosy);
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "3");
  EXPECT_EQ(json::parse(pod["metadata"]["annotations"][annotation].get<std::string>()),
            json::parse(R"({"gpus":[{"count":1,"model":["A100"],"memory":8589934592},{"count":2,"ecc":true}],
                            "interconnect":"nvlink:2"})"));
}

TEST(PodWriter, KeepsInstancesOfAServiceWhereTheyMayBe) {
  using enum workload::NodeRuleKind;
  auto web = task();
  web.origin = {.kind = workload::OriginKind::kService, .name = "/shop/web"};
  web.resources.attributes = {{"zone", {"z1"}}};
  const std::map<std::string, std::string> nothing;
  const auto pod = write_pod({web,
                              0,
                              nothing,
                              {},
                              {{"hostname", kApart},
                               {"rack", kApart, {}, 2},
                               {"rack", kNoneOf, {"r9"}},
                               {"room", kOneOf},
                               {"zone", kTogether},
                               {"row", kSpread, {}, 3}}},
                             kSettings);
  ASSERT_TRUE(pod);
  const auto& labels = (*pod)["metadata"]["labels"];
  EXPECT_EQ(labels[kServiceLabel], "shop_web");
  EXPECT_EQ(labels[kSetLabel], "2");
  const auto& spec = (*pod)["spec"];
  const json all = {{kJournalLabel, "j"}, {kServiceLabel, "shop_web"}};
  auto set = all;
  set[kSetLabel] = "2";
  const auto required = [&](const char* how) {
    return spec["affinity"][how]["requiredDuringSchedulingIgnoredDuringExecution"];
  };
  EXPECT_EQ(required("nodeAffinity")["nodeSelectorTerms"],
            json::parse(R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["z1"]},
                {"key":"rack","operator":"Exists"},{"key":"rack","operator":"NotIn","values":["r9"]},
                {"key":"room","operator":"Exists"},{"key":"room","operator":"DoesNotExist"}]}])"));
  const json apart =
      json::array({{{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", {{"matchLabels", all}}}},
                   {{"topologyKey", "rack"}, {"labelSelector", {{"matchLabels", set}}}}});
  EXPECT_EQ(required("podAntiAffinity"), apart);
  EXPECT_EQ(required("podAffinity")[0]["topologyKey"], "zone");
  EXPECT_EQ(spec["topologySpreadConstraints"][0]["minDomains"], 3);
  EXPECT_EQ(spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"], all);
}

TEST(PodWriter, LabelsOfServicesAreNeverTheSameForTwo) {
  EXPECT_EQ(service_label("/a.b"), "a.b");
  EXPECT_EQ(service_label("/a/b"), "a_b");
  const std::string longest(80, 'x');
  EXPECT_EQ(service_label("/" + longest).size(), 32U);
  EXPECT_NE(service_label("/" + longest), service_label("/" + longest + "y"));
}

TEST(PodWriter, RefusesWholeWhatAPodCannotBe) {
  auto bad = task();
  bad.image.reset();
  bad.privileged = true;
  bad.batch.idle_timeout = std::chrono::milliseconds(1000);
  bad.devices = {"vendor.com/net=eth1"};
  bad.fetch = std::vector<workload::Fetch>{{.uri = "http://x/y"}};
  bad.processes = 7;
  bad.name_space = "team";
  bad.resources.nic = workload::Preference::kRequire;
  EXPECT_THAT(refused(bad),
              ::testing::UnorderedElementsAre("/image", "/privileged", "/devices", "/fetch", "/processes",
                                              "/namespace", "/nic", "/idle_timeout"));
  for (const auto* image :
       {"oci:/srv/a", "docker-archive:a.tar", "rootfs:/srv/root", "variants:/l.yaml", "/srv/a"}) {
    auto local = task();
    local.image = image;
    EXPECT_THAT(refused(local), ElementsAre("/image")) << image;
  }
  auto settings = kSettings;
  settings.default_image = "base:1";
  auto none = task();
  none.image.reset();
  EXPECT_EQ(written(none, settings)["spec"]["containers"][0]["image"], "base:1");
}

TEST(PodWriter, NamesOfUsersAreNamesOfNamespaces) {
  auto one = task();
  for (const auto& [user, expected] :
       std::map<std::string, std::string>{{"ann", "drover-ann"},
                                          {"Ann", "drover-uid-1000"},
                                          {"a_n", "drover-uid-1000"},
                                          {"uid-7", "drover-uid-1000"},
                                          {std::string(60, 'a'), "drover-uid-1000"},
                                          {"", "drover-uid-1000"}}) {
    one.owner_name = user;
    EXPECT_EQ(name_space_of(one.owner_name, one.owner, kSettings), expected) << user;
  }
}

TEST(PodWriter, WhatCanNeverBeAPodIsSaidBefore) {
  auto one = task();
  EXPECT_TRUE(check_task(one, {}, kSettings));
  one.resources.attributes = {{"topology.kubernetes.io/zone", {"a-1", ""}}};
  EXPECT_TRUE(check_task(one, {}, kSettings));
  for (const auto& [name, value] :
       {std::pair("rack!", "a"), {"/rack", "a"}, {"rack", "a b"}, {"rack", "-a"}}) {
    one.resources.attributes = {{name, {value}}};
    EXPECT_EQ(check_task(one, {}, kSettings).error().path, "/constraints") << name << value;
  }
  one.resources.attributes.clear();
  EXPECT_FALSE(check_task(one, {{"a b", workload::NodeRuleKind::kApart}}, kSettings));
  one.origin = {workload::OriginKind::kService, "/web", "", ""};
  EXPECT_TRUE(check_task(one, {{"hostname", workload::NodeRuleKind::kApart}}, kSettings));
  one.privileged = true;
  EXPECT_EQ(check_task(one, {}, kSettings).error().path, "/privileged");
}

/// What Kubernetes makes of the text of a container's arguments and variables.
std::string expanded(const std::string& text, const std::map<std::string, std::string>& variables) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      result += '$';
      ++i;
      continue;
    }
    const auto end = text.find(')', i);
    if (text[i + 1] != '(' || end == std::string::npos) {
      result += text[i];
      continue;
    }
    const auto name = text.substr(i + 2, end - i - 2);
    const auto found = variables.find(name);
    result += found == variables.end() ? "$(" + name + ")" : found->second;
    i = end;
  }
  return result;
}

TEST(PodWriter, WordsAndVariablesArriveAsTheyWereWritten) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::element('$', '(', ')', 'A', 'x', ' '));
    auto one = task();
    one.command = std::vector<std::string>{text};
    const std::map<std::string, std::string> environment{{"A", "secret"}, {"T", text}};
    const auto pod = written(one, kSettings, environment);
    const auto& container = pod["spec"]["containers"][0];
    RC_ASSERT(expanded(container["args"][0].get<std::string>(), environment) == text);
    for (const auto& variable : container["env"])
      if (variable["name"] == "T")
        RC_ASSERT(expanded(variable["value"].get<std::string>(), environment) == text);
  }));
}

}  // namespace
}  // namespace drover::pods
