#include "placement/request.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::gpus;

struct RequestCase {
  const char* path;
  std::function<void(Request&)> spoil;
};

class BadRequest : public ::testing::TestWithParam<RequestCase> {};

TEST_P(BadRequest, IsRefusedAndTheFieldIsNamed) {
  auto request = gpus(2);
  ASSERT_TRUE(validate(request));
  GetParam().spoil(request);
  const auto status = validate(request);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().path, GetParam().path);
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
}

constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Request, BadRequest,
    ::testing::Values(
        RequestCase{"/gpus/0/count", [](Request& r) { r.gpus[0].count = 0; }},
        RequestCase{"/gpus/0/count", [](Request& r) { r.gpus[0].count = -1; }},
        RequestCase{"/gpus/0/count", [](Request& r) { r.gpus[0].count = 65; }},
        RequestCase{"/gpus/1/count",
                    [](Request& r) { r.gpus.push_back({std::numeric_limits<int>::max(), {}}); }},
        RequestCase{"/gpus", [](Request& r) { r.gpus.assign(9, {1, {}}); }},
        RequestCase{"/gpus/0/filter/models/1", [](Request& r) { r.gpus[0].filter.models = {"A100", "--"}; }},
        RequestCase{"/gpus/0/filter/models/0",
                    [](Request& r) { r.gpus[0].filter.models = {std::string(300, 'x')}; }},
        RequestCase{"/gpus/0/filter/min_memory_bytes",
                    [](Request& r) { r.gpus[0].filter.min_memory_bytes = kMost; }},
        RequestCase{"/gpus/0/filter/min_compute_capability",
                    [](Request& r) { r.gpus[0].filter.min_compute_capability = {-7, 0}; }},
        RequestCase{"/gpus/0/filter/min_driver", [](Request& r) { r.gpus[0].filter.min_driver = "535..1"; }},
        RequestCase{"/gpus/0/filter/min_driver", [](Request& r) { r.gpus[0].filter.min_driver = "new"; }},
        RequestCase{"/share/milli", [](Request& r) { r.share.milli = 0; }},
        RequestCase{"/share/milli", [](Request& r) { r.share.milli = 1001; }},
        RequestCase{"/share/memory_bytes", [](Request& r) { r.share.memory_bytes = kMost; }},
        RequestCase{"/share", [](Request& r) { r.share = {500, 1 << 30}; }},
        RequestCase{"/share",
                    [](Request& r) {
                      r.gpus.clear();
                      r.share.milli = 500;
                    }},
        RequestCase{"/interconnect/min_nvlinks", [](Request& r) { r.interconnect.min_nvlinks = -1; }},
        RequestCase{"/interconnect/max_pcie",
                    [](Request& r) { r.interconnect.max_pcie = gpu::PcieLevel::kSameDevice; }},
        RequestCase{"/interconnect",
                    [](Request& r) {
                      r.gpus[0].count = 1;
                      r.interconnect.min_nvlinks = 1;
                    }},
        RequestCase{"/different_models",
                    [](Request& r) {
                      r.gpus[0].count = 1;
                      r.different_models = true;
                    }},
        RequestCase{"/cpu_affinity",
                    [](Request& r) {
                      r.gpus.clear();
                      r.cpu_affinity = Preference::kRequire;
                    }},
        RequestCase{"/nic",
                    [](Request& r) {
                      r.gpus.clear();
                      r.nic = Preference::kPrefer;
                    }},
        RequestCase{"/group",
                    [](Request& r) {
                      r.gpus.clear();
                      r.group = "pod";
                    }},
        RequestCase{"/group", [](Request& r) { r.group = std::string(300, 'x'); }},
        RequestCase{"/milli_cpus", [](Request& r) { r.milli_cpus = -1; }},
        RequestCase{"/milli_cpus",
                    [](Request& r) { r.milli_cpus = std::numeric_limits<std::int64_t>::max(); }},
        RequestCase{"/memory_bytes", [](Request& r) { r.memory_bytes = kMost; }},
        RequestCase{"/attributes/0/name", [](Request& r) { r.attributes = {{"", {"x"}}}; }},
        RequestCase{"/attributes/1/name",
                    [](Request& r) { r.attributes = {{"rack", {"a"}}, {"rack", {"b"}}}; }},
        RequestCase{"/attributes/0/any_of", [](Request& r) { r.attributes = {{"rack", {}}}; }},
        RequestCase{"/attributes/0/any_of/1", [](Request& r) { r.attributes = {{"rack", {"a", ""}}}; }}));

TEST(Request, MayAskForNothing) {
  EXPECT_TRUE(validate(Request{}));
}

}  // namespace
}  // namespace drover::placement
