#include "sim/profile.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/yaml.h"
#include "sim/faults.h"
#include "sim/mig.h"
#include "sim/testing/shipped.h"

namespace drover::sim {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// The message about a shipped profile after `edit(json&)` spoilt it.
template <typename Edit>
std::string mistake(const std::string& name, Edit edit) {
  auto document = *read_yaml(profile_file(name));
  edit(document);
  const auto profile = decode_profile(document, "test");
  EXPECT_FALSE(profile);
  return profile ? "" : profile.error().message + " at " + profile.error().path;
}

class ShippedProfile : public testing::TestWithParam<std::string> {};

TEST_P(ShippedProfile, IsWhole) {
  const auto profile = shipped(GetParam());
  EXPECT_EQ(profile.name, GetParam());
  EXPECT_THAT(profile.description, Not(IsEmpty()));
  ASSERT_THAT(profile.gpus, Not(IsEmpty()));
  std::set<std::string> uuids;
  for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
    EXPECT_TRUE(uuids.insert(profile.gpus[i].uuid).second);
    EXPECT_EQ(profile.gpus[i].minor, static_cast<int>(i));
    for (std::size_t j = 0; j < profile.gpus.size(); ++j) EXPECT_EQ(profile.links[i][j], profile.links[j][i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ShippedProfile,
                         testing::Values("k80", "k40m", "minsky", "dgx1-v100", "dgx2", "dgx-a100", "dgx-h100",
                                         "pcie4", "mixed", "k80-396", "m60-396", "h100-615"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Profile, K40mIsTheNodeOfItsTime) {
  const auto profile = shipped("k40m");
  EXPECT_EQ(profile.driver_version, "390.30");
  EXPECT_EQ(profile.host.cpus, 40);
  EXPECT_EQ(profile.host.memory_mib, 256904U);
  EXPECT_EQ(profile.host.disk_mib, 3489713U);
  ASSERT_EQ(profile.gpus.size(), 1U);
  EXPECT_EQ(profile.gpus[0].model.memory_mib, 11441U);
  EXPECT_EQ(to_string(profile.gpus[0].pci, 4), "0000:82:00.0");
}

TEST(Profile, TheGpusOfOneBoardShareSerialAndBoard) {
  const auto gpus = shipped("k80").gpus;
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].board, gpus[1].board);
  EXPECT_EQ(gpus[0].serial, gpus[1].serial);
  EXPECT_NE(gpus[0].uuid, gpus[1].uuid);
}

TEST(Profile, MadeUpUuidsAreStableAndWellFormed) {
  EXPECT_EQ(shipped("k40m").gpus[0].uuid, shipped("k40m").gpus[0].uuid);
  EXPECT_THAT(
      shipped("k40m").gpus[0].uuid,
      testing::MatchesRegex("GPU-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

TEST(Profile, MistakesHaveTheirPaths) {
  EXPECT_THAT(mistake("k40m", [](json& d) { d["gpus"][0].erase("pci"); }),
              AllOf(HasSubstr("missing"), HasSubstr("/gpus/0/pci")));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["gpus"][0]["pci"] = "82"; }),
              HasSubstr("not a PCI address: '82'"));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["gpus"][0]["model"] = "k41"; }),
              HasSubstr("no such model 'k41'"));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["gpus"][0]["numa"] = 7; }), HasSubstr("/gpus/0/numa"));
  EXPECT_THAT(mistake("k40m", [](json& d) { d.erase("gpus"); }),
              AllOf(HasSubstr("missing"), HasSubstr("/gpus")));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["models"]["k40m"]["memory"].erase("mib"); }),
              HasSubstr("/models/k40m/memory/mib"));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["models"]["k40m"]["colour"] = 1; }),
              HasSubstr("unknown field 'colour'"));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["driver"]["cuda"] = 9.1; }), HasSubstr("/driver/cuda"));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["host"]["cpus"] = 41; }), HasSubstr("1 CPUs are in no node"));
  EXPECT_THAT(mistake("dgx2", [](json& d) { d["host"]["nics"][3]["numa"] = 2; }),
              HasSubstr("/host/nics/3/numa"));
  EXPECT_THAT(mistake("dgx2", [](json& d) { d["host"]["nics"][1]["name"] = "mlx5_0"; }),
              HasSubstr("/host/nics/1/name"));
  EXPECT_THAT(mistake("dgx2", [](json& d) { d["host"]["nics"][0]["speed"] = 100; }),
              HasSubstr("/host/nics/0/speed"));
  EXPECT_THAT(mistake("k40m", [](json& d) { d["host"]["numa"][0]["cpus"] = "9-0"; }),
              HasSubstr("not an ascending list"));
}

TEST(Profile, AMachineMayHaveNoGpus) {
  auto document = *read_yaml(profile_file("dgx2"));
  document["gpus"] = json::array();
  document.erase("links");
  const auto profile = decode_profile(document, "test");
  ASSERT_TRUE(profile) << to_string(profile.error());
  EXPECT_THAT(profile->gpus, IsEmpty());
}

TEST(Profile, ReportsEveryMistakeAtOnce) {
  const auto message = mistake("k80", [](json& d) {
    d.erase("name");
    d["gpus"][1]["pci"] = d["gpus"][0]["pci"];
    d["gpus"][1]["minor"] = 0;
  });
  EXPECT_THAT(message, AllOf(HasSubstr("/name"), HasSubstr("/gpus/1/pci"), HasSubstr("/gpus/1/minor")));
}

TEST(Profile, TheLinkMatrixIsSquareAndSymmetric) {
  EXPECT_THAT(mistake("minsky", [](json& d) { d["links"].erase(0); }), HasSubstr("one row per GPU"));
  EXPECT_THAT(mistake("minsky", [](json& d) { d["links"][1] = "2 0 0"; }),
              HasSubstr("row 1 must be 4 counts"));
  EXPECT_THAT(mistake("minsky", [](json& d) { d["links"][1] = "2 0 1 0"; }),
              HasSubstr("differs from its mirror image"));
  EXPECT_THAT(mistake("minsky", [](json& d) { d["links"][0] = "1 2 0 0"; }), HasSubstr("must be 0"));
}

TEST(Profile, NvlinksNeedAKindAndHaveALimit) {
  EXPECT_THAT(mistake("minsky", [](json& d) { d.erase("nvlink"); }), HasSubstr("/nvlink"));
  EXPECT_THAT(mistake("minsky", [](json& d) { d["gpus"][0]["cpu_links"] = 17; }),
              HasSubstr("GPU 0 has more than 18 NVLinks"));
}

/// Every place in a document, from the leaves up.
std::vector<json::json_pointer> places(const json& value,
                                       const json::json_pointer& at = json::json_pointer()) {
  std::vector<json::json_pointer> found;
  const auto add = [&](const json& child, const json::json_pointer& place) {
    const auto inner = places(child, place);
    found.insert(found.end(), inner.begin(), inner.end());
    found.push_back(place);
  };
  if (value.is_object())
    for (const auto& [key, child] : value.items()) add(child, at / key);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) add(value[i], at / i);
  return found;
}

TEST(Profile, AWrongValueAnywhereIsRefusedByItsPath) {
  const auto document = *read_yaml(profile_file("dgx-a100"));
  for (const auto& place : places(document)) {
    for (const json& wrong : {json(-1), json(1e300), json("x y"), json::array({json::object()})}) {
      auto spoilt = document;
      if (spoilt[place].type() == wrong.type() && wrong.is_string()) continue;
      spoilt[place] = wrong;
      const auto profile = decode_profile(spoilt, "test");
      EXPECT_FALSE(profile) << place << " = " << wrong;
    }
  }
}

/// The YAML examples of docs/simulator.md, in their order.
std::vector<std::string> documented() {
  std::ifstream file(std::filesystem::path(SIM_PROFILES) / "../../docs/simulator.md");
  std::vector<std::string> examples;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```yaml") examples.emplace_back();
    if (line.starts_with("```"))
      inside = line == "```yaml";
    else if (inside)
      examples.back() += line + "\n";
  }
  return examples;
}

TEST(Profile, TheDocumentedExamplesAreValid) {
  const auto examples = documented();
  ASSERT_EQ(examples.size(), 3U);
  const auto profile = decode_profile(*parse_yaml(examples[0], "profile"), "profile");
  ASSERT_TRUE(profile) << to_string(profile.error());
  EXPECT_EQ(profile->links[0][1], 12);
  const auto faults = decode_faults(*parse_yaml(examples[1], "faults"), *profile, "faults");
  ASSERT_TRUE(faults) << to_string(faults.error());
  EXPECT_TRUE((*faults)[0].lost);
  const auto mig = decode_mig_state(*parse_yaml(examples[2], "mig"), *profile, "mig");
  ASSERT_TRUE(mig) << to_string(mig.error());
  EXPECT_EQ((*mig)[0].instances.at(0).start, 4U);
}

TEST(Profile, ADocumentThatIsNoObjectIsRefused) {
  EXPECT_FALSE(decode_profile(json(), "test"));
}

TEST(CpuList, ReadsRanges) {
  EXPECT_EQ(*parse_cpu_list("0-2,5"), (std::vector<int>{0, 1, 2, 5}));
  EXPECT_EQ(*parse_cpu_list(""), std::vector<int>());
  for (const char* wrong : {"2-1", "1,1", "a", "1-", "-1", "0-9999999"})
    EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

TEST(PciAddress, ReadsEverySpelling) {
  for (const char* text : {"00000002:01:00.0", "0002:01:00.0", "2:1:0.0", "0002:01:00"})
    EXPECT_EQ(*parse_pci_address(text), (PciAddress{2, 1, 0})) << text;
  EXPECT_EQ(*parse_pci_address("81:00.0"), (PciAddress{0, 0x81, 0}));
  for (const char* wrong : {"", "x", "100:00.0", "0000:01:20.0", "0000:01:00.1", "0000:01:00.0x"})
    EXPECT_FALSE(parse_pci_address(wrong)) << wrong;
}

}  // namespace
}  // namespace drover::sim
