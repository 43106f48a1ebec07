// What pods are told that wait for room, nodes and devices, and that what is named helps.

#include "kube/scheduler/testing/situations.h"
#include "kube/scheduler/wishes.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using testing::kFour;
using testing::kJob;
using testing::kOne;
using testing::kTwo;
using testing::nothing;
using testing::Place;
using testing::Situation;
using testing::Wants;

PodTerm beside(const std::string& app, const std::string& key = "kubernetes.io/hostname") {
  PodTerm term{.topology_key = key, .namespaces = {"team"}};
  term.selector = {.nothing = false, .requirements = {{"app", LabelOperator::kIn, {app}}}};
  return term;
}

void label_app(Pod& pod) {
  pod.labels = std::make_shared<const Labels>(Labels{{"app", "web"}});
}

ResourceSlice devices_of(const std::string& node, int gpus) {
  ResourceSlice slice{.name = "slice-" + node, .driver = "gpu.example", .pool = node};
  slice.nodes.node_name = node;
  for (int i = 0; i < gpus; ++i) {
    const auto attribute = [](const char* name, std::string value) {
      return std::make_shared<const DeviceAttribute>(DeviceAttribute{name, std::move(value)});
    };
    DeviceKind kind{.driver = slice.driver};
    kind.attributes = {attribute("model", i == 0 ? "large" : "small"), attribute("type", "gpu"),
                       attribute("uuid", fmt::format("{}-{}", node, i))};
    slice.devices.push_back(
        {.name = fmt::format("gpu-{}", i), .kind = std::make_shared<const DeviceKind>(kind)});
  }
  return slice;
}

void put_devices(Place& place, const std::string& node, int gpus) {
  auto device_class = DeviceClass{.name = "gpu"};
  place.scheduler.put_device_class(device_class);
  place.scheduler.put_slice(devices_of(node, gpus));
}

void put_claim(Place& place, int count, const std::string& selector = "", const std::string& holder = "") {
  DeviceWish wish{.device_class = "gpu", .count = count};
  if (!selector.empty()) wish.selectors = {selector};
  ClaimSpec spec;
  spec.requests = {{"gpus", {wish}}};
  ResourceClaim claim{.uid = "claim-uid", .name_space = "team", .name = "claim"};
  claim.owner_uid = "uid-" + (holder.empty() ? kJob : holder);
  claim.spec = std::make_shared<const ClaimSpec>(spec);
  place.scheduler.put_claim(claim);
}

void uses_claim(Pod& pod) {
  pod.claims = {{"gpus", "claim", true, true}};
}

void uses_volume(PodTemplate& made) {
  made.volume_claims = {"data"};
}

void put_volume(Place& place, bool for_one_pod = false, const std::string& zone = "") {
  place.scheduler.change_cluster([&](Cluster& cluster) {
    cluster.put_volume_claim({.name_space = "team",
                              .name = "data",
                              .volume_name = "pv",
                              .bound = true,
                              .for_one_pod = for_one_pod});
    Volume volume{.name = "pv", .kind = "nfs"};
    if (!zone.empty()) volume.zones = {{"topology.kubernetes.io/zone", {zone}}};
    cluster.put_volume(volume);
  });
}

// A situation is a line of what is there, of what is said, and of what helps.

std::vector<Situation> of_amounts() {
  return {
      {"fewer GPUs are free",
       [](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 3);
         in.job(kTwo);
       },
       {"1 Insufficient nvidia.com/gpu.", "What helps: ask for 1 GPU."},
       [](Place& in) { in.again(kOne); }},
      {"none is free",
       [](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 4);
         in.job(kTwo);
       },
       {"2 GPUs are wanted and 0 of 4 are free", "wait for 2 GPUs of a"},
       [](Place& in) { in.ends("other"); }},
      {"no node has so many",
       [](Place& in) {
         in.node("a", 4);
         in.node("b", 2);
         in.job({.gpus = 8});
       },
       {"2 Insufficient nvidia.com/gpu.", "ask for 4 GPUs"},
       [](Place& in) { in.again(kFour); }},
      {"no node has any",
       [](Place& in) {
         in.node("a", 0);
         in.node("b", 0);
         in.job(kOne);
       },
       {"2 Insufficient nvidia.com/gpu.", "2 nodes have no GPU"},
       [](Place& in) { in.node("c", 1); }},
      {"too many CPUs",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) { made.requests.cpu = 32'000; });
       },
       {"1 Insufficient cpu.", "ask for 16 CPUs"},
       [](Place& in) { in.again(kOne, [](auto& made) { made.requests.cpu = 16'000; }); }},
      {"CPUs are taken by others",
       [](Place& in) {
         in.node("a", 4);
         in.node("b", 0);
         in.runs("other", "a", 0, [](auto& made) { made.requests.cpu = 15'500; },
                 {.scheduler = "default-scheduler"});
         in.job(kOne);
       },
       {"1 Insufficient cpu, 1 Insufficient nvidia.com/gpu.", "ask for 0.5 CPUs"},
       [](Place& in) { in.again(kOne, [](auto& made) { made.requests.cpu = 500; }); }},
      {"too much memory",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) { made.requests.memory = 100LL << 30; });
       },
       {"1 Insufficient memory.", "ask for 64 GiB of memory"},
       [](Place& in) { in.again(kOne, [](auto& made) { made.requests.memory = 64LL << 30; }); }},
      {"too much scratch space",
       [](Place& in) {
         in.node("a", 4, [](Node& node) { node.allocatable.storage = 10LL << 30; });
         in.job(kOne, [](auto& made) { made.requests.storage = 20LL << 30; });
       },
       {"1 Insufficient ephemeral-storage.", "ask for at most 10240Mi of ephemeral-storage"},
       [](Place& in) { in.again(kOne, [](auto& made) { made.requests.storage = 10LL << 30; }); }},
      {"another resource",
       [](Place& in) {
         in.node("a", 4, [](Node& node) { node.allocatable.others["example.com/fpga"] = 2; });
         in.job(kOne, [](auto& made) { made.requests.others["example.com/fpga"] = 3; });
       },
       {"1 Insufficient example.com/fpga.", "ask for at most 2 of example.com/fpga"},
       [](Place& in) { in.again(kOne, [](auto& made) { made.requests.others["example.com/fpga"] = 2; }); }},
      {"huge pages",
       [](Place& in) {
         in.node("a", 4, [](Node& node) { node.allocatable.others["hugepages-2Mi"] = 4 << 20; });
         in.job(kOne, [](auto& made) { made.requests.others["hugepages-2Mi"] = 8 << 20; });
       },
       {"1 Insufficient hugepages-2Mi.", "of hugepages-2Mi"},
       [](Place& in) {
         in.again(kOne, [](auto& made) { made.requests.others["hugepages-2Mi"] = 4 << 20; });
       }},
      {"as many pods as may be",
       [](Place& in) {
         in.node("a", 4, [](Node& node) { node.most_pods = 1; });
         in.runs("other", "a", 0);
         in.job(kOne);
       },
       {"1 Too many pods."},
       [](Place& in) { in.ends("other"); }},
      {"a node that offers fewer than it has",
       [](Place& in) {
         in.node("a", 4, [](Node& node) { node.allocatable.others[kGpuResource] = 1; });
         in.job(kTwo);
       },
       {"1 node(s) had unhealthy GPUs.", "ask for 1 GPU"},
       [](Place& in) { in.again(kOne); }},
  };
}

std::vector<Situation> of_nodes() {
  const Taint dedicated{"dedicated", "research", "NoSchedule"},
      not_ready{"node.kubernetes.io/not-ready", "", "NoExecute"};
  const auto tolerating = [](const Taints& taints) {
    return [taints](PodTemplate& made) {
      for (const auto& taint : taints) made.tolerations.push_back({taint.key, "Exists", "", taint.effect});
    };
  };
  return {
      {"no node",
       [](Place& in) { in.job(kOne); },
       {"No nodes available to schedule pods."},
       [](Place& in) { in.node("a", 1); }},
      {"a taint",
       [=](Place& in) {
         in.taint("a", 4, {dedicated});
         in.job(kOne);
       },
       {"1 node(s) had untolerated taint(s).", "tolerate the taint 'dedicated=research:NoSchedule'"},
       [=](Place& in) { in.again(kOne, tolerating({dedicated})); }},
      {"two taints of a node",
       [=](Place& in) {
         in.taint("a", 4, {dedicated, {"gpu", "", "NoExecute"}});
         in.job(kOne);
       },
       {"tolerate the taints 'dedicated=research:NoSchedule' and 'gpu:NoExecute'"},
       [=](Place& in) { in.again(kOne, tolerating({dedicated, {"gpu", "", "NoExecute"}})); }},
      {"a taint, and no room elsewhere",
       [=](Place& in) {
         in.taint("a", 4, {dedicated});
         in.node("b", 2);
         in.runs("other", "b", 1);
         in.job(kTwo);
       },
       {"1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s). 1 node lacks 2 free GPUs (has "
        "1).",
        "ask for 1 GPU"},
       [](Place& in) { in.again(kOne); }},
      {"a node that is not ready",
       [=](Place& in) {
         in.taint("a", 4, {not_ready});
         in.job(kOne);
       },
       {"1 node(s) had untolerated taint(s).",
        "wait until the node 'a' has no taint 'node.kubernetes.io/not-ready:NoExecute' any more"},
       [](Place& in) { in.node("a", 4); }},
      {"a cordoned node",
       [](Place& in) {
         in.node("a", 4, [](Node& node) { node.unschedulable = true; });
         in.job(kOne);
       },
       {"1 node(s) were unschedulable.", "uncordon the node 'a'"},
       [](Place& in) { in.node("a", 4); }},
      {"cordoned, tainted and full",
       [=](Place& in) {
         in.node("a", 4, [](Node& node) { node.unschedulable = true; });
         in.taint("b", 4, {dedicated});
         in.node("c", 1);
         in.runs("other", "c", 1);
         in.job(kOne);
       },
       {"1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.",
        "uncordon the node 'a'"},
       [](Place& in) { in.node("a", 4); }},
      {"a label that no node has",
       [](Place& in) {
         in.labelled("a", 4, "model", "t4");
         in.job(kOne, [](auto& made) { made.node_selector["model"] = "a100"; });
       },
       {"1 node(s) didn't match Pod's node affinity/selector.", "leave model=a100 out of its node selector"},
       [](Place& in) { in.again(kOne); }},
      {"one label of two",
       [](Place& in) {
         in.labelled("a", 4, "zone", "z1");
         in.job(kOne, [](auto& made) { made.node_selector = {{"zone", "z1"}, {"model", "a100"}}; });
       },
       {"leave model=a100 out of its node selector"},
       [](Place& in) { in.again(kOne, [](auto& made) { made.node_selector = {{"zone", "z1"}}; }); }},
      {"two labels",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) { made.node_selector = {{"zone", "z1"}, {"model", "a100"}}; });
       },
       {"leave out its node selector"},
       [](Place& in) { in.again(kOne); }},
      {"node affinity",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) {
           made.node_terms = NodeTerms{{.labels = {{"gpu-memory", LabelOperator::kGreater, {"40"}}}}};
         });
       },
       {"1 node(s) didn't match Pod's node affinity/selector.", "leave out its required node affinity"},
       [](Place& in) { in.again(kOne); }},
      {"affinity and selector",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) {
           made.node_selector = {{"zone", "z1"}};
           made.node_terms = NodeTerms{{.labels = {{"x", LabelOperator::kExists}}}};
         });
       },
       {"leave out its node selector and its required node affinity"},
       [](Place& in) { in.again(kOne); }},
      {"a node by its name, which is full",
       [](Place& in) {
         in.node("a", 1);
         in.node("b", 1);
         in.runs("other", "a", 1);
         in.job(kOne, [](auto& made) { made.node_selector = {{"kubernetes.io/hostname", "a"}}; });
       },
       {"1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector.",
        "leave kubernetes.io/hostname=a out of its node selector"},
       [](Place& in) { in.again(kOne); }},
      {"features of nodes",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) { made.node_features = {"Resize"}; });
       },
       {"1 node(s) didn't match Pod's required features."},
       [](Place& in) { in.node("a", 4, [](Node& node) { node.features = {"Resize"}; }); }},
      {"a node that is gone",
       [](Place& in) {
         in.node("a", 1);
         in.node("b", 1);
         in.runs("other", "b", 1);
         in.runs("more", "a", 1);
         in.scheduler.remove_node("b");
         in.job(kOne);
       },
       {"1 Insufficient nvidia.com/gpu, 1 node(s) were gone."},
       [](Place& in) { in.ends("more"); }},
  };
}

std::vector<Situation> of_relations() {
  const auto port = [](PodTemplate& made) { made.ports = {{.port = 8080}}; };
  return {
      {"a host port is taken",
       [=](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 1, port);
         in.job(kOne, port);
       },
       {"1 node(s) didn't have free ports for the requested pod ports.", "leave out the host port 8080"},
       [](Place& in) { in.again(kOne); }},
      {"two host ports",
       [=](Place& in) {
         in.node("a", 4);
         in.runs("other", "a", 1, port);
         in.job(kOne, [](auto& made) { made.ports = {{.port = 443}, {.port = 8080}}; });
       },
       {"leave out the host ports 443 and 8080"},
       [](Place& in) { in.again(kOne); }},
      {"near a pod that there is not",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) { made.affinity = {beside("store")}; });
       },
       {"1 node(s) didn't match pod affinity rules.", "leave out its required pod affinity"},
       [](Place& in) { in.again(kOne); }},
      {"far from others",
       [](Place& in) {
         in.node("a", 4);
         in.edit = label_app;
         in.scheduler.put_pod({[] {
           auto pod = asking_pod("other", {});
           label_app(pod);
           pod.node_name = "a";
           return pod;
         }()});
         in.job(kOne, [](auto& made) { made.anti_affinity = {beside("web")}; });
       },
       {"1 node(s) didn't match pod anti-affinity rules.", "leave out its required pod anti-affinity"},
       [](Place& in) { in.again(kOne); }},
      {"others keep it off",
       [](Place& in) {
         in.node("a", 4);
         in.edit = label_app;
         in.runs("other", "a", 1, [](auto& made) { made.anti_affinity = {beside("web")}; });
         in.job(kOne);
       },
       {"1 node(s) didn't satisfy existing pods anti-affinity rules."},
       [](Place& in) { in.ends("other"); }},
      {"spread over zones",
       [](Place& in) {
         in.labelled("a", 4, "zone", "z1");
         in.labelled("b", 0, "zone", "z2");
         in.edit = label_app;
         in.scheduler.put_pod({[] {
           auto pod = asking_pod("other", {});
           label_app(pod);
           pod.node_name = "a";
           return pod;
         }()});
         in.job(kOne, [](auto& made) {
           made.spread = {{.topology_key = "zone", .selector = beside("web").selector}};
         });
       },
       {"leave out its topology spread constraints"},
       [](Place& in) { in.again(kOne); }},
      {"a volume claim that there is not",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, uses_volume);
       },
       {"persistentvolumeclaim \"data\" not found"},
       [](Place& in) { put_volume(in); }},
      {"a volume that another pod has",
       [](Place& in) {
         in.node("a", 4);
         put_volume(in, true);
         in.runs("other", "a", 1, uses_volume);
         in.job(kOne, uses_volume);
       },
       {"ReadWriteOncePod access mode already in-use by another pod"},
       [](Place& in) { in.ends("other"); }},
      {"a volume of another zone",
       [](Place& in) {
         in.labelled("a", 4, "topology.kubernetes.io/zone", "z1");
         put_volume(in, false, "z2");
         in.job(kOne, uses_volume);
       },
       {"1 node(s) had no available volume zone."},
       [](Place& in) { in.labelled("b", 4, "topology.kubernetes.io/zone", "z2"); }},
      {"what we do not decide on",
       [](Place& in) {
         in.node("a", 4);
         in.job(kOne, [](auto& made) { made.unsupported = {"uses volumes of the kind 'rbd'"}; });
       },
       {"1 uses volumes of the kind 'rbd'."},
       [](Place& in) { in.again(kOne); }},
  };
}

std::vector<Situation> of_claims() {
  return {
      {"a claim that is not made yet",
       [](Place& in) {
         in.node("a", 0);
         put_devices(in, "a", 2);
         in.edit = uses_claim;
         in.job({});
       },
       {"1 node(s) not asked.", "claim"},
       [](Place& in) { put_claim(in, 1); }},
      {"a claim for more than there is",
       [](Place& in) {
         in.node("a", 0);
         put_devices(in, "a", 2);
         in.edit = uses_claim;
         put_claim(in, 3);
         in.job({});
       },
       {"0/1 nodes are available: 1 "},
       [](Place& in) { put_claim(in, 2); }},
      {"a claim for what no device is",
       [](Place& in) {
         in.node("a", 0);
         put_devices(in, "a", 2);
         in.edit = uses_claim;
         put_claim(in, 1, "device.attributes['gpu.example'].model == 'huge'");
         in.job({});
       },
       {"0/1 nodes are available: 1 "},
       [](Place& in) { put_claim(in, 1, "device.attributes['gpu.example'].model == 'large'"); }},
      {"a class that there is not",
       [](Place& in) {
         in.node("a", 0);
         in.scheduler.put_slice(devices_of("a", 2));
         in.edit = uses_claim;
         put_claim(in, 1);
         in.job({});
       },
       {"gpu"},
       [](Place& in) { in.scheduler.put_device_class({.name = "gpu"}); }},
  };
}

TEST(Reasons, AreNotSoughtWithoutEnd) {
  Place place;
  for (int i = 0; i < 40; ++i)
    place.taint(fmt::format("n{}", i), 4, {{fmt::format("of-{}", i), "", "NoSchedule"}});
  PodTemplate made;
  for (int i = 0; i < 5000; ++i) made.node_selector[fmt::format("label-{}", i)] = "x";
  for (int i = 0; i < 5000; ++i) made.requests.others[fmt::format("example.com/r{}", i)] = 1;
  EXPECT_LE(wishes_of(made, place.scheduler.cluster()).size(), 32U);
}

TEST(Reasons, NameWhatHelpsOnNodes) {
  for (const auto& all : {of_amounts(), of_nodes(), of_relations(), of_claims()})
    for (const auto& situation : all) testing::check(situation);
}

}  // namespace
}  // namespace drover::kube::scheduler
