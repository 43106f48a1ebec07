#include "api/native/request_paths.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover::api {
namespace {

using nlohmann::json;

std::string path_in(const std::string& body, const std::string& path) {
  return in_fields({ErrorKind::kInvalid, "message", "hint", path}, json::parse(body)).path;
}

TEST(RequestPaths, NameTheFieldsOfTheBody) {
  struct Case {
    std::string body, path, field;
  };
  const std::vector<Case> cases = {
      {R"({"gpus": 9})", "/gpus/0/count", "/gpus"},
      {R"({"gpus": 9})", "/gpus", "/gpus"},
      {R"({"gpu_model": "X"})", "/gpus/0/filter/models", "/gpu_model"},
      {R"({"gpu_memory": "9T"})", "/gpus/0/filter/min_memory_bytes", "/gpu_memory"},
      {R"({"gpus": [{}, {"model": "X"}]})", "/gpus/1/filter/models", "/gpus/1/model"},
      {R"({"gpus": [{}, {"count": 9}]})", "/gpus/1/count", "/gpus/1/count"},
      {R"({"gpu_share": 0.5})", "/share/milli", "/gpu_share"},
      {R"({"gpus": 0.5})", "/share", "/gpus"},
      {R"({"gpu_share": "9T"})", "/gpus/0/filter/min_memory_bytes", "/gpu_share"},
      {R"({"gpus": [{}], "gpu_share": "9T"})", "/gpus/0/filter/min_memory_bytes", "/gpu_share"},
      {R"({"gpu_memory": "9T", "gpu_share": "1G"})", "/gpus/0/filter/min_memory_bytes", "/gpu_memory"},
      {R"({})", "/milli_cpus", "/cpus"},
      {R"({})", "/memory_bytes", "/memory"},
      {R"({})", "/attributes/2", "/constraints"},
      {R"({"constraints": {"a/b": "x", "rack": "r7"}})", "/attributes/1", "/constraints/rack"},
      {R"({"constraints": {"a/b": "x", "rack": "r7"}})", "/attributes/0/name", "/constraints/a~1b"},
      {R"({})", "/interconnect/min_nvlinks", "/interconnect"},
      {R"({})", "/nic", "/nic"},
      {R"({})", "/priority", "/priority"},
      {R"({})", "", ""},
      {R"({"gpus": 1, "gang": {"size": 2}})", "/members", "/gang/size"},
      {R"({"gpus": 1, "gang": {"size": 2}})", "/members/1/gpus/0/count", "/gpus"},
      {R"({"gang": {"members": [{}]}})", "/members", "/gang/members"},
      {R"({"gang": {"members": [{}, {"gpus": 9}]}})", "/members/1/gpus/0/count", "/gang/members/1/gpus"},
      {R"({"gpus": 9, "gang": {"members": [{}, {}]}})", "/members/1/gpus/0/count", "/gpus"},
  };
  for (const auto& [body, path, field] : cases) EXPECT_EQ(path_in(body, path), field) << body << " " << path;
}

TEST(RequestPaths, KeepTheRestOfTheError) {
  const Error error{ErrorKind::kConflict, "message", "hint", "/milli_cpus"};
  EXPECT_EQ(in_fields(error, json::object()), (Error{ErrorKind::kConflict, "message", "hint", "/cpus"}));
}

}  // namespace
}  // namespace drover::api
