// What stands in a cluster whatever happens to its scheduler: it ends between any two writes and another one
// begins, its writes fail, or are done and nobody says so. Controllers of Kubernetes are played by the test.

#include "kube/scheduling/loop.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "base/pause.h"
#include "kube/client/testing/fake_api.h"
#include "kube/scheduler/preemption_words.h"
#include "kube/scheduling/claim_writer.h"
#include "kube/scheduling/cluster_watch.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::FakeApi;

const Resource kClasses{"resource.k8s.io", "v1", "deviceclasses"};
const Resource kPublished{"resource.k8s.io", "v1", "resourceslices"};
constexpr const char* kSpace = "team";
constexpr int kGpusOfNode = 4;
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr auto kPatience = 30s;
#else
constexpr auto kPatience = 6s;
#endif

/// The API server as one life of a scheduler sees it.
class Connection : public Api {
 public:
  enum class Fate { kDone, kNotDone, kAnswerLost, kRefused };
  using Decide = std::function<Fate(const ApiRequest&)>;

  /// From the first `kNotDone` of one that dies on nothing of it comes through any more.
  Connection(FakeApi& server, Decide decide) : server_(server), decide_(std::move(decide)) {}

  Result<json> send(const ApiRequest& request, const std::stop_token& stop, const TakeItem& take) override {
    if (request.verb == "get" || request.verb == "list") {
      if (is_cut) return fail(ErrorKind::kUnavailable, "the API server cannot be reached");
      return server_.send(request, stop, take);
    }
    if (request.path.resource.plural == "events") return json::object();
    const std::lock_guard lock(mutex_);
    if (is_cut) return fail(ErrorKind::kUnavailable, "the API server cannot be reached");
    switch (decide_(request)) {
      case Fate::kNotDone:
        return fail(ErrorKind::kUnavailable, "the API server is busy");
      case Fate::kRefused:
        return fail(ErrorKind::kPermissionDenied, "a policy refuses it");
      case Fate::kAnswerLost:
        (void)server_.send(request, stop, take);
        return fail(ErrorKind::kTimeout, "the answer was lost");
      case Fate::kDone:
        break;
    }
    return server_.send(request, stop, take);
  }
  Status watch(const WatchRequest& request, const TakeEvent& take, const std::stop_token& stop) override {
    return server_.watch(request, take, stop);
  }

  std::atomic<bool> is_cut = false;

 private:
  FakeApi& server_;
  const Decide decide_;
  std::mutex mutex_;
};

/// A process.
struct Life {
  Life(FakeApi& server, Connection::Decide decide)
      : api(server, std::move(decide)), loop(api, counts, options()) {
    watch = std::make_unique<ClusterWatch>(api, loop, scheduler::kNewestKnown, [](const std::string&) {});
    EXPECT_TRUE(watch->wait_until_listed(kPatience));
    loop.begin();
  }
  /// Nothing more of it is written.
  ~Life() { api.is_cut = true; }

  static SchedulingOptions options() {
    SchedulingOptions options;
    options.writes = 8;
    options.first_retry = 10ms;
    options.longest_retry = 100ms;
    options.look_again = 20ms;
    options.scheduler.half_gang_grace = 100ms;
    return options;
  }

  Connection api;
  SchedulingCounts counts;
  SchedulingLoop loop;
  std::unique_ptr<ClusterWatch> watch;
};

struct Wanted {
  int gpus = 1;
  bool claims = false;
  std::string gang = {};
  int size = 0;
  int priority = 0;
};

class World {
 public:
  World() {
    for (const auto& resource : {kClasses, kPublished, kResourceClaims}) server.serve(resource);
    create({kClasses}, {{"metadata", {{"name", "gpu"}}}, {"spec", json::object()}});
  }

  void add_node(const std::string& name, bool published) {
    json gpus = json::array(), links = json::array(), devices = json::array();
    for (int i = 0; i < kGpusOfNode; ++i) {
      const auto uuid = fmt::format("{}-{}", name, i);
      gpus.push_back({{"uuid", uuid}, {"model", "V100"}, {"memory", 16LL << 30}});
      links.push_back(json(static_cast<std::size_t>(i), json{0, 5}));
      devices.push_back({{"name", fmt::format("gpu-{}", i)},
                         {"attributes", {{"uuid", {{"string", uuid}}}, {"type", {{"string", "gpu"}}}}}});
    }
    const auto text = json{{"driver", "535"}, {"gpus", gpus}, {"links", links}}.dump();
    const json amounts{{"cpu", "64"},
                       {"memory", "64Gi"},
                       {"pods", "110"},
                       {"nvidia.com/gpu", published ? "0" : std::to_string(kGpusOfNode)}};
    create({kNodes}, {{"metadata", {{"name", name}, {"annotations", {{"drover.dev/gpu-topology", text}}}}},
                      {"spec", json::object()},
                      {"status", {{"capacity", amounts}, {"allocatable", amounts}}}});
    if (published)
      create({kPublished}, {{"metadata", {{"name", name}}},
                            {"spec",
                             {{"driver", "gpu.example"},
                              {"nodeName", name},
                              {"devices", devices},
                              {"pool", {{"name", name}, {"generation", 1}, {"resourceSliceCount", 1}}}}}});
  }
  void cordon(const std::string& name, bool cordoned = true) {
    ASSERT_TRUE(server.patch({kNodes, "", name}, PatchType::kMerge,
                             {{"spec", {{"unschedulable", cordoned ? json(true) : json()}}}}));
  }
  std::size_t bound_pods() {
    std::size_t bound = 0;
    for (const auto& [name, pod] : list(kPods)) bound += text_at(pod, "/spec/nodeName").empty() ? 0 : 1;
    return bound;
  }
  void want(const std::string& name, const Wanted& wanted) {
    wanted_[name] = wanted;
    make_pod(name, wanted);
  }

  /// What controllers do, once: pods that are gone come again, and so do the claims of pods; those of pods
  /// that are gone give their devices back.
  void control() {
    auto pods = list(kPods);
    for (const auto& [name, wanted] : wanted_)
      if (!pods.contains(name)) make_pod(name, wanted);
    pods = list(kPods);
    auto claims = list(kResourceClaims);
    for (const auto& [name, pod] : pods)
      if (pod["spec"].contains("resourceClaims") && !claims.contains(name)) make_claim(name, pod);
    for (auto& [name, claim] : claims) {
      const auto owner = pods.find(name);
      const auto uid = claim["metadata"]["ownerReferences"][0]["uid"];
      if (owner == pods.end() || owner->second["metadata"]["uid"] != uid)
        (void)server.remove({kResourceClaims, kSpace, name});
    }
  }

  /// What may never be: one GPU for two.
  std::string doubled() {
    std::map<std::string, std::string> users;
    std::string wrong;
    const auto use = [&](const std::string& gpu, const std::string& user) {
      const auto [at, is_new] = users.emplace(gpu, user);
      if (!is_new) wrong += fmt::format("{} is of {} and {}; ", gpu, at->second, user);
    };
    for (const auto& [name, pod] : list(kPods)) {
      std::istringstream gpus(text_at(pod, "/metadata/annotations/drover.dev~1gpus"));
      for (std::string gpu; std::getline(gpus, gpu, ',');) use(gpu, name);
    }
    for (const auto& [name, claim] : list(kResourceClaims))
      for (const auto& device : devices_of(claim)) use(device, name);
    return wrong;
  }

  /// What may not be when nothing goes on any more.
  std::string unsettled() {
    auto wrong = doubled();
    const auto pods = list(kPods);
    const auto claims = list(kResourceClaims);
    for (const auto& [name, wanted] : wanted_) {
      const auto pod = pods.find(name);
      const auto node = pod == pods.end() ? "" : text_at(pod->second, "/spec/nodeName");
      if (node.empty()) {
        wrong += name + " has no node; ";
        if (const auto claim = claims.find(name); claim != claims.end() && !devices_of(claim->second).empty())
          wrong += name + " has devices and no node; ";
        continue;
      }
      if (!wanted.claims) continue;
      const auto claim = claims.find(name);
      const auto devices = claim == claims.end() ? std::vector<std::string>() : devices_of(claim->second);
      if (devices.size() != static_cast<std::size_t>(wanted.gpus))
        wrong += name + " runs without its devices; ";
      for (const auto& device : devices)
        if (!device.starts_with(node + "-")) wrong += fmt::format("{} on {} has {}; ", name, node, device);
    }
    return wrong;
  }

  /// "" when it has come to rest as it should.
  std::string settle() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::string wrong;
    do {
      std::this_thread::sleep_for(5ms);
      control();
      wrong = unsettled();
    } while (!wrong.empty() && std::chrono::steady_clock::now() < end);
    return wrong;
  }

  std::map<std::string, json> list(const Resource& resource) {
    std::map<std::string, json> objects;
    const auto listed = server.list({.resource = resource});
    for (const auto& object : listed->items) objects.emplace(text_at(*object, "/metadata/name"), *object);
    return objects;
  }

  FakeApi server;

 private:
  void create(const ObjectPath& path, const json& object) { ASSERT_TRUE(server.create(path, object)); }

  void make_pod(const std::string& name, const Wanted& wanted) {
    json spec{{"schedulerName", "drover"}, {"priority", wanted.priority}};
    json container{{"name", "main"}, {"image", "i"}};
    if (wanted.claims) {
      spec["resourceClaims"] = json::array({json{{"name", "gpus"}, {"resourceClaimTemplateName", "t"}}});
      container["resources"]["claims"] = json::array({json{{"name", "gpus"}}});
    } else {
      container["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(wanted.gpus);
      container["resources"]["requests"] = container["resources"]["limits"];
    }
    spec["containers"] = json::array({container});
    json metadata{{"name", name}, {"creationTimestamp", "2026-01-01T00:00:00Z"}};
    if (!wanted.gang.empty()) {
      metadata["labels"]["drover/gang"] = wanted.gang;
      metadata["annotations"]["drover/gang-size"] = std::to_string(wanted.size);
    }
    const auto made =
        server.create({kPods, kSpace}, {{"metadata", metadata}, {"spec", spec}, {"status", json::object()}});
    ASSERT_TRUE(made);
    if (wanted.claims) make_claim(name, *made);
  }

  void make_claim(const std::string& name, const json& pod) {
    const json owner{{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"name", name},
                     {"controller", true},
                     {"uid", pod["metadata"]["uid"]}};
    const json request{
        {"name", "gpus"},
        {"exactly",
         {{"deviceClassName", "gpu"}, {"allocationMode", "ExactCount"}, {"count", wanted_.at(name).gpus}}}};
    json devices;
    devices["requests"] = json::array({request});
    (void)server.remove({kResourceClaims, kSpace, name});
    create({kResourceClaims, kSpace},
           {{"metadata", {{"name", name}, {"ownerReferences", json::array({owner})}}},
            {"spec", {{"devices", devices}}}});
    const json status{{"name", "gpus"}, {"resourceClaimName", name}};
    ASSERT_TRUE(server.patch({kPods, kSpace, name, "status"}, PatchType::kMerge,
                             {{"status", {{"resourceClaimStatuses", json::array({status})}}}}));
  }

  static std::vector<std::string> devices_of(const json& claim) {
    std::vector<std::string> devices;
    const auto results = claim.value("/status/allocation/devices/results"_json_pointer, json::array());
    for (const auto& result : results)
      devices.push_back(fmt::format("{}-{}", text_at(result, "/pool"), text_at(result, "/device")));
    return devices;
  }

  std::map<std::string, Wanted> wanted_;
};

Connection::Decide all_done() {
  return [](const ApiRequest&) { return Connection::Fate::kDone; };
}

/// All of it has room together.
void add_everything(World& world) {
  for (const auto* const name : {"a", "b", "c"}) world.add_node(name, false);
  for (const auto* const name : {"d", "e", "f"}) world.add_node(name, true);
  world.want("one", {.gpus = 1});
  world.want("two", {.gpus = 2});
  world.want("claims-one", {.gpus = 1, .claims = true});
  world.want("claims-two", {.gpus = 2, .claims = true});
  for (int rank = 0; rank < 3; ++rank) world.want(fmt::format("gang-{}", rank), {.gang = "gang", .size = 3});
  for (int rank = 0; rank < 4; ++rank)
    world.want(fmt::format("pack-{}", rank), {.claims = true, .gang = "pack", .size = 4});
}

/// Of a life that ends after so many of its writes; `at_rest` is asked for all the while.
void live(World& world, int writes, const std::function<bool()>& at_rest) {
  std::atomic<int> left = writes;
  std::atomic<bool> dead = false;
  Life life(world.server, [&](const ApiRequest&) {
    if (left-- > 0) return Connection::Fate::kDone;
    dead = true;
    return Connection::Fate::kNotDone;
  });
  const auto begun = std::chrono::steady_clock::now();
  bool rests = false;
  while (!dead && !rests && std::chrono::steady_clock::now() - begun < kPatience) {
    world.control();
    rests = at_rest();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(dead || rests) << world.unsettled();
}

/// Every write is the last one of some life.
TEST(SchedulingLoop, EndsBetweenAnyTwoWritesAndAnotherGoesOn) {
  int lives = 0;
  for (unsigned seed = 0; seed < 6 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    World world;
    add_everything(world);
    for (bool at_rest = false; !at_rest && !::testing::Test::HasFailure(); ++lives) {
      live(world, seed == 0 ? 1 : static_cast<int>(random() % 5), [&] {
        at_rest = world.unsettled().empty();
        return at_rest;
      });
      EXPECT_EQ(world.doubled(), "");
    }
    const Life last(world.server, all_done());
    EXPECT_EQ(world.settle(), "");
  }
  ::testing::Test::RecordProperty("lives", lives);
}

/// After so many writes all nodes take no more pods, and there are others.
TEST(SchedulingLoop, WhatIsHalfDoneOnNodesThatTakeNoMoreIsDoneElsewhere) {
  int given_back = 0;
  for (int writes = 1; writes < 40 && !::testing::Test::HasFailure(); writes += 3) {
    SCOPED_TRACE(writes);
    World world;
    add_everything(world);
    live(world, writes, [&] { return world.unsettled().empty(); });
    for (const auto* const name : {"a", "b", "c", "d", "e", "f"}) world.cordon(name);
    for (const auto* const name : {"g", "h", "i"}) world.add_node(name, false);
    for (const auto* const name : {"j", "k", "l"}) world.add_node(name, true);
    for (const auto& [name, claim] : world.list(kResourceClaims)) {
      const bool has_devices = claim.contains("/status/allocation"_json_pointer);
      given_back += has_devices && text_at(world.list(kPods)[name], "/spec/nodeName").empty() ? 1 : 0;
    }
    const Life life(world.server, all_done());
    EXPECT_EQ(world.settle(), "");
  }
  EXPECT_GT(given_back, 0);
}

TEST(SchedulingLoop, HalfAGangIsEndedWhereTheRestHasNoPlace) {
  for (int bound = 1; bound <= 2 && !::testing::Test::HasFailure(); ++bound) {
    SCOPED_TRACE(bound);
    World world;
    for (const auto* const name : {"a", "b", "c"}) world.add_node(name, false);
    for (int rank = 0; rank < 3; ++rank)
      world.want(fmt::format("gang-{}", rank), {.gpus = kGpusOfNode, .gang = "gang", .size = 3});
    live(world, bound, [] { return false; });
    ASSERT_EQ(world.bound_pods(), bound);
    for (const auto* const name : {"a", "b", "c"}) world.cordon(name);
    const Life life(world.server, all_done());
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (world.bound_pods() > 0 && std::chrono::steady_clock::now() < end) {
      world.control();
      std::this_thread::sleep_for(5ms);
    }
    EXPECT_EQ(world.bound_pods(), 0U);
    for (const auto* const name : {"a", "b", "c"}) world.cordon(name, false);
    EXPECT_EQ(world.settle(), "");
  }
}

TEST(SchedulingLoop, WhoMakesRoomIsToldForWhomWhereItMaySeeThat) {
  World world;
  world.add_node("a", false);
  world.add_node("b", false);
  std::mutex mutex;
  std::map<std::string, std::string> told;  // by namespace
  const Life life(world.server, [&](const ApiRequest& request) {
    if (request.path.subresource == "status" && request.body.find("DisruptionTarget") != std::string::npos) {
      const std::lock_guard lock(mutex);
      told[request.path.name_space] = text_at(json::parse(request.body), "/status/conditions/0/message");
    }
    return Connection::Fate::kDone;
  });
  const auto wait_until = [](const std::function<bool()>& is_so) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!is_so() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
    return is_so();
  };
  world.want("near", {.gpus = kGpusOfNode});
  ASSERT_TRUE(wait_until([&] { return world.bound_pods() == 1; }));
  auto far = world.list(kPods)["near"];
  far["metadata"] = {{"name", "far"}, {"creationTimestamp", "2026-01-01T00:00:00Z"}};
  far["spec"].erase("nodeName");
  ASSERT_TRUE(world.server.create({kPods, "others"}, far));
  ASSERT_TRUE(wait_until([&] { return world.bound_pods() == 2; }));
  world.want("first", {.gpus = kGpusOfNode, .priority = 5});
  world.want("second", {.gpus = kGpusOfNode, .priority = 5});
  EXPECT_TRUE(wait_until([&] {
    const std::lock_guard lock(mutex);
    return told.size() == 2;
  }));
  const std::lock_guard lock(mutex);
  const auto near = scheduler::read_preemption(told[kSpace]);
  ASSERT_TRUE(near) << told[kSpace];
  EXPECT_TRUE(near->pod == "first" || near->pod == "second") << near->pod;
  EXPECT_EQ(scheduler::read_preemption(told["others"]), scheduler::Preemption()) << told["others"];
}

/// One write of five fails, or is done and nobody says so.
TEST(SchedulingLoop, WritesThatFailAreRepeatedOrTakenBack) {
  for (unsigned seed = 0; seed < 12 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    auto random = std::make_shared<std::mt19937>(seed);
    World world;
    add_everything(world);
    const Life life(world.server, [random, faults = 60](const ApiRequest&) mutable {
      if (faults == 0 || (*random)() % 3 != 0) return Connection::Fate::kDone;
      --faults;
      constexpr std::array kFates{Connection::Fate::kNotDone, Connection::Fate::kAnswerLost,
                                  Connection::Fate::kRefused};
      return kFates.at((*random)() % kFates.size());
    });
    EXPECT_EQ(world.settle(), "");
  }
}

}  // namespace
}  // namespace drover::kube
