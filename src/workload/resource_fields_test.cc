#include "workload/resource_fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "workload/task.h"

namespace drover::workload {
namespace {

using nlohmann::json;

constexpr std::uint64_t kGiB = 1ULL << 30;

struct Decoded {
  Resources resources;
  std::vector<Error> mistakes;

  std::vector<std::string> paths() const {
    std::vector<std::string> result;
    for (const auto& mistake : mistakes) result.push_back(mistake.path);
    std::sort(result.begin(), result.end());
    return result;
  }
};

Decoded decode(const std::string& text) {
  Decoded decoded;
  const auto body = json::parse(text);
  Decoder decoder(body, decoded.mistakes);
  decode_resources(decoder, decoded.resources);
  decoder.finish();
  return decoded;
}

Resources sound(const std::string& text) {
  const auto decoded = decode(text);
  for (const auto& mistake : decoded.mistakes) ADD_FAILURE() << text << ": " << to_string(mistake);
  return decoded.resources;
}

TEST(ResourceFields, CountsAndPartsOfGpus) {
  EXPECT_EQ(sound(R"({})").gpu_count(), 0);
  EXPECT_EQ(sound(R"({"gpus": 0})").gpu_count(), 0);
  EXPECT_EQ(sound(R"({"gpus": 2.0})").gpu_count(), 2);
  const auto half = sound(R"({"gpus": 0.5})");
  EXPECT_EQ(half.gpu_count(), 1);
  EXPECT_EQ(half.share, (Share{500, 0}));
  EXPECT_EQ(sound(R"({"gpus": 0.001})").share.milli, 1);
  EXPECT_EQ(sound(R"({"gpus": 0.29})").share.milli, 290);  // 0.29 * 1000 is not 290 in binary
  const auto each = sound(R"({"gpus": 2, "gpu_share": 0.25})");
  EXPECT_EQ(each.gpu_count(), 2);
  EXPECT_EQ(each.share, (Share{250, 0}));
  EXPECT_EQ(sound(R"({"gpus": 1, "gpu_share": "8GiB"})").share, (Share{1000, 8 * kGiB}));
  EXPECT_TRUE(sound(R"({"gpus": 1, "gpu_share": 1})").share.whole());
}

TEST(ResourceFields, PartsAreOfOneProfileAndCountAsSevenths) {
  const auto one = sound(R"({"gpu_part": "3g.20gb"})");
  EXPECT_EQ(one.part, "3g.20gb");
  EXPECT_EQ(one.gpu_count(), 1);
  EXPECT_EQ(one.share, (Share{428, 0}));
  EXPECT_EQ(sound(R"({"gpus": 3, "gpu_part": "1g.5gb+me", "gpu_model": "A100"})").part, "1g.5gb.me");
  EXPECT_TRUE(sound(R"({"gpu_part": "7g.80gb", "nic": "none"})").share.whole());
  for (const auto* name :
       {"", "g", "8g.40gb", "0g.5gb", "1g5gb", "1g.gb", "1g.5gb/../x", "1g.5gb with", "-1g.5gb"})
    EXPECT_EQ(share_of_part(name), std::nullopt) << name;
  const std::vector<std::pair<std::string, std::string>> refused = {
      {R"("gpu_share": 0.5)", "/gpu_share"},
      {R"("gpus": 0.5)", "/gpus"},
      {R"("gpus": [{"count": 1}])", "/gpus"},
      {R"("gpus": 0)", "/gpu_part"},
      {R"("group": "g")", "/group"},
      {R"("gpus": 2, "interconnect": "nvlink")", "/interconnect"},
      {R"("nic": "prefer")", "/nic"},
      {R"("gpu_memory": "1GiB")", "/gpu_memory"},
      {R"("cpu_affinity": "require")", "/cpu_affinity"}};
  for (const auto& [field, path] : refused)
    EXPECT_EQ(decode(R"({"gpu_part": "1g.5gb", )" + field + "}").paths(), std::vector{path}) << field;
}

TEST(ResourceFields, MpsIsOfAGroupAndWholeGpus) {
  EXPECT_TRUE(sound(R"({"gpus": 2, "group": "g", "share_by": "mps"})").by_mps());
  EXPECT_TRUE(sound(R"({"gpus": [{"count": 1}], "group": "g", "share_by": "mps"})").by_mps());
  for (const auto* fields :
       {R"("gpus": 1)", R"("gpus": 1, "gpu_share": "2GiB", "group": "g")", R"("gpus": 0.5, "group": "g")"})
    EXPECT_EQ(decode(fmt::format(R"({{"share_by": "mps", {}}})", fields)).paths(),
              std::vector<std::string>{"/share_by"})
        << fields;
  EXPECT_FALSE(decode(R"({"share_by": "mps", "gpus": 0, "group": "g"})").paths().empty());
  EXPECT_FALSE(decode(R"({"share_by": "mps", "gpu_part": "7g.40gb", "group": "g"})").paths().empty());
}

TEST(ResourceFields, MigIsAShareThatIsAPart) {
  const auto half = sound(R"({"gpu_share": 0.5, "share_by": "mig"})");
  EXPECT_TRUE(half.wants_parts());
  EXPECT_EQ(half.part, "") << "of which profile depends on the machine";
  EXPECT_EQ(half.share, (Share{500, 0}));
  const std::vector<std::pair<std::string, std::string>> refused = {
      {R"("gpus": 1)", "/share_by"},
      {R"("gpu_share": 0.5, "group": "g")", "/group"},
      {R"("gpu_share": 0.5, "gpus": 2, "interconnect": "nvlink")", "/interconnect"},
      {R"("gpu_share": 0.5, "gpus": [{"count": 1}])", "/gpus"},
      {R"("gpu_part": "1g.5gb")", "/share_by"}};
  for (const auto& [fields, path] : refused)
    EXPECT_EQ(decode(R"({"share_by": "mig", )" + fields + "}").paths(), std::vector{path}) << fields;
}

TEST(ResourceFields, FiltersOfOneKindMeanOneGpuWhenTheirNumberIsLeftOut) {
  const auto one = sound(R"({"gpu_model": "A100", "gpu_memory": "40GiB", "gpu_compute_capability": "8.0",
                             "gpu_ecc": true, "gpu_driver": "535.104"})");
  ASSERT_EQ(one.gpus.size(), 1u);
  EXPECT_EQ(one.gpus.front(),
            (DeviceClaim{1, {{"A100"}, 40 * kGiB, gpu::ComputeCapability{8, 0}, true, "535.104"}}));
  EXPECT_EQ(sound(R"({"gpu_share": "2GiB"})").gpu_count(), 1);
  EXPECT_EQ(sound(R"({"gpus": 4, "gpu_model": ["A100", "H100"]})").gpus.front().filter.models.size(), 2u);
}

TEST(ResourceFields, SeveralKindsAtOnce) {
  const auto both = sound(R"({"gpus": [{"count": 2, "model": ["A100"], "memory": 1024}, {"model": "T4"}]})");
  ASSERT_EQ(both.gpus.size(), 2u);
  EXPECT_EQ(both.gpus[0], (DeviceClaim{2, {{"A100"}, 1024, {}, {}, ""}}));
  EXPECT_EQ(both.gpus[1], (DeviceClaim{1, {{"T4"}, 0, {}, {}, ""}}));
  EXPECT_EQ(both.gpu_count(), 3);
}

TEST(ResourceFields, PreferencesAndConstraints) {
  const auto preferences = sound(R"({"gpus": 2, "different_models": true, "interconnect": "nvlink:2",
      "cpu_affinity": "require", "nic": "prefer", "group": "a.b-c_1",
      "constraints": {"rack": ["r7", "r8"], "zone": "z"}})");
  EXPECT_TRUE(preferences.different_models);
  EXPECT_EQ(preferences.cpu_affinity, Preference::kRequire);
  EXPECT_EQ(preferences.nic, Preference::kPrefer);
  EXPECT_EQ(preferences.attributes,
            (std::vector<AttributeConstraint>{{"rack", {"r7", "r8"}}, {"zone", {"z"}}}));
  EXPECT_EQ(preferences.group, "a.b-c_1");
  EXPECT_EQ(sound("{}").cpu_affinity, Preference::kPrefer);
}

TEST(ResourceFields, WaysInWhichGpusAreJoined) {
  using gpu::PcieLevel;
  const std::vector<std::pair<std::string, Interconnect>> words = {
      {"nvlink", {1, PcieLevel::kUnknown}},    {"NVLink:2", {2, PcieLevel::kUnknown}},
      {"NV4", {4, PcieLevel::kUnknown}},       {"switch", {0, PcieLevel::kSwitch}},
      {"PIX", {0, PcieLevel::kSwitch}},        {"PXB", {0, PcieLevel::kSwitches}},
      {"switches", {0, PcieLevel::kSwitches}}, {"PHB", {0, PcieLevel::kHostBridge}},
      {"bridge", {0, PcieLevel::kHostBridge}}, {"node", {0, PcieLevel::kSameNuma}},
      {"any", {0, PcieLevel::kUnknown}},       {"SYS", {0, PcieLevel::kUnknown}},
      {"qpi", {0, PcieLevel::kUnknown}}};
  for (const auto& [word, meaning] : words) {
    const auto parsed = parse_interconnect(word);
    ASSERT_TRUE(parsed) << word;
    EXPECT_EQ(*parsed, meaning) << word;
    EXPECT_EQ(parse_interconnect(to_string(*parsed)), parsed) << word;
  }
  for (const auto* word :
       {"", "nvlink:", "nvlink:0", "nvlink:-1", "nvlink:999999999999", "nvlink:2x", "nv", "pcie", "fast"})
    EXPECT_FALSE(parse_interconnect(word)) << word;
}

/// What must be refused, and the fields that are named for it, sorted.
const std::vector<std::pair<std::string, std::vector<std::string>>> kWrong = {
    // zero, negative, absurd, overflowing
    {R"({"gpus": -1})", {"/gpus"}},
    {R"({"gpus": 1e308})", {"/gpus"}},
    {R"({"gpus": 99999999999999999999})", {"/gpus"}},
    {R"({"gpus": 1025})", {"/gpus"}},
    {R"({"gpus": 0.0001})", {"/gpus"}},
    {R"({"gpus": 0.33333})", {"/gpus"}},
    {R"({"gpus": 1.5})", {"/gpus"}},
    {R"({"gpus": "two"})", {"/gpus"}},
    {R"({"gpus": true})", {"/gpus"}},
    {R"({"gpus": {"count": 1}})", {"/gpus"}},
    {R"({"gpus": []})", {"/gpus"}},
    {R"({"gpus": [1]})", {"/gpus/0"}},
    {R"({"gpus": [{"count": 0}]})", {"/gpus/0/count"}},
    {R"({"gpus": [{"count": -3}]})", {"/gpus/0/count"}},
    {R"({"gpus": [{"count": 1.5}]})", {"/gpus/0/count"}},
    {R"({"gpus": [{"count": 1000}, {"count": 1000}]})", {"/gpus"}},
    {R"({"gpus": [{"count": 1, "modle": "A100"}]})", {"/gpus/0/modle"}},
    {R"({"gpus": [{"memory": 0}]})", {"/gpus/0/memory"}},
    {R"({"gpus": [{"memory": -5}, {"ecc": "yes"}]})", {"/gpus/0/memory", "/gpus/1/ecc"}},
    {R"({"gpu_memory": "9999999999G"})", {"/gpu_memory"}},
    {R"({"gpu_memory": "1e5"})", {"/gpu_memory"}},
    {R"({"gpu_memory": "0"})", {"/gpu_memory"}},
    {R"({"gpu_model": ""})", {"/gpu_model"}},
    {R"({"gpu_model": []})", {"/gpu_model"}},
    {R"({"gpu_model": [7]})", {"/gpu_model/0"}},
    {R"({"gpu_model": "a\nb"})", {"/gpu_model"}},
    {R"({"gpu_compute_capability": "7"})", {"/gpu_compute_capability"}},
    {R"({"gpu_compute_capability": "-7.0"})", {"/gpu_compute_capability"}},
    {R"({"gpu_compute_capability": "7.0.1"})", {"/gpu_compute_capability"}},
    {R"({"gpu_compute_capability": "999999999999.0"})", {"/gpu_compute_capability"}},
    {R"({"gpu_driver": "new"})", {"/gpu_driver"}},
    {R"({"gpu_driver": "535..1"})", {"/gpu_driver"}},
    {R"({"gpu_share": 0})", {"/gpu_share"}},
    {R"({"gpu_share": -0.5})", {"/gpu_share"}},
    {R"({"gpu_share": 1.01})", {"/gpu_share"}},
    {R"({"gpu_share": 1e-300})", {"/gpu_share"}},
    {R"({"gpu_share": 0.0005})", {"/gpu_share"}},
    {R"({"gpu_share": "1B"})", {"/gpu_share"}},
    {R"({"gpu_share": "lots"})", {"/gpu_share"}},
    {R"({"gpu_share": []})", {"/gpu_share"}},
    {R"({"gpus": 2, "interconnect": "warp"})", {"/interconnect"}},
    {R"({"gpus": 1, "cpu_affinity": "maybe"})", {"/cpu_affinity"}},
    {R"({"gpus": 1, "nic": 1})", {"/nic"}},
    {R"({"gpus": 1, "group": "a b"})", {"/group"}},
    {R"({"gpus": 1, "group": ""})", {"/group"}},
    {R"({"constraints": ["rack"]})", {"/constraints"}},
    {R"({"constraints": {"rack": []}})", {"/constraints/rack"}},
    {R"({"constraints": {"rack": null}})", {"/constraints/rack"}},
    {R"({"constraints": {"a/b": 1, "": "x"}})", {"/constraints/", "/constraints/a~1b"}},
    {R"({"cpus": 0})", {"/cpus"}},
    {R"({"cpus": 1e300})", {"/cpus"}},
    {R"({"memory": "1k"})", {"/memory"}},
    {R"({"memory": 1e30})", {"/memory"}},
    // right each by itself, wrong together
    {R"({"gpus": 0, "gpu_model": "A100"})", {"/gpu_model"}},
    {R"({"gpus": 0, "gpu_memory": "1G", "gpu_ecc": false})", {"/gpu_ecc", "/gpu_memory"}},
    {R"({"gpus": 0, "gpu_share": 0.5})", {"/gpu_share"}},
    {R"({"gpus": 0.5, "gpu_share": 0.5})", {"/gpus"}},
    {R"({"gpus": [{"count": 1}], "gpu_model": "A100"})", {"/gpu_model"}},
    {R"({"gpus": 1, "interconnect": "nvlink"})", {"/interconnect"}},
    {R"({"interconnect": "switch"})", {"/interconnect"}},
    {R"({"gpus": 1, "different_models": true})", {"/different_models"}},
    {R"({"cpu_affinity": "require"})", {"/cpu_affinity"}},
    {R"({"nic": "prefer"})", {"/nic"}},
    {R"({"group": "g"})", {"/group"}},
    // several at once; nothing is said of what only follows from another mistake
    {R"({"gpus": -1, "gpu_memory": "x", "nic": "require", "cpus": -2})", {"/cpus", "/gpu_memory", "/gpus"}},
};

TEST(ResourceFields, WrongRequestsNameTheField) {
  for (const auto& [text, paths] : kWrong) {
    const auto decoded = decode(text);
    EXPECT_EQ(decoded.paths(), paths) << text;
    for (const auto& mistake : decoded.mistakes) EXPECT_FALSE(mistake.message.empty()) << text;
  }
}

TEST(ResourceFields, AContradictionThatIsNoneIsTaken) {
  sound(R"({"gpus": 1, "interconnect": "any"})");
  sound(R"({"cpu_affinity": "prefer", "nic": "none"})");
  sound(R"({"gpus": 2, "gpu_share": 0.5, "interconnect": "nvlink"})");
  sound(R"({"gpus": 0.5, "gpu_model": "A100", "group": "g"})");
}

rc::Gen<DeviceFilter> any_filter() {
  return rc::gen::apply(
      [](bool models, std::uint64_t memory, int capability, int ecc, bool driver) {
        DeviceFilter filter;
        if (models) filter.models = {"A100", "RTX 4090"};
        filter.min_memory_bytes = memory;
        if (capability > 0) filter.min_compute_capability = gpu::ComputeCapability{capability, 5};
        if (ecc > 0) filter.ecc = ecc == 1;
        if (driver) filter.min_driver = "535.104.12";
        return filter;
      },
      rc::gen::arbitrary<bool>(), rc::gen::inRange<std::uint64_t>(0, 1ULL << 50), rc::gen::inRange(0, 10),
      rc::gen::inRange(0, 3), rc::gen::arbitrary<bool>());
}

RC_GTEST_PROP(ResourceFields, PropertyAStoredTaskReadsBackAsItWas, ()) {
  Resources resources;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
    resources.gpus.push_back({*rc::gen::inRange(1, 100), *any_filter()});
  if (*rc::gen::arbitrary<bool>())
    resources.share.memory_bytes = *rc::gen::inRange<std::uint64_t>(1, 1ULL << 50);
  else
    resources.share.milli = *rc::gen::inRange(1, 1001);
  resources.different_models = *rc::gen::arbitrary<bool>();
  resources.interconnect = *parse_interconnect(
      *rc::gen::element<std::string>("any", "nvlink", "nvlink:6", "switch", "switches", "bridge", "node"));
  resources.cpu_affinity = static_cast<Preference>(*rc::gen::inRange(0, 3));
  resources.nic = static_cast<Preference>(*rc::gen::inRange(0, 3));
  resources.milli_cpus = *rc::gen::inRange(1, 1'000'000);
  resources.memory_bytes = *rc::gen::inRange<std::uint64_t>(0, 1ULL << 50);
  if (*rc::gen::arbitrary<bool>()) resources.attributes = {{"rack", {"r7", "r8"}}, {"zone", {"z"}}};
  if (*rc::gen::arbitrary<bool>()) resources.group = "group";

  Task stored;
  stored.resources = resources;
  const auto task = encode(stored);
  std::vector<Error> mistakes;
  Decoder decoder(task, mistakes);
  Resources again;
  decode_stored_resources(decoder, again);
  RC_ASSERT(mistakes.empty());
  RC_ASSERT(again == resources);
  RC_ASSERT(task.at("gpus") == resources.gpu_count());
}

}  // namespace
}  // namespace drover::workload
