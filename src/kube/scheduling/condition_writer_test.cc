#include "kube/scheduling/condition_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

namespace drover::kube {
namespace {

using namespace std::chrono_literals;

/// Remembers of which pods something was written.
class Written : public Api {
 public:
  Result<nlohmann::json> send(const ApiRequest& request, const std::stop_token&, const TakeItem&) override {
    const std::lock_guard lock(mutex_);
    names_.push_back(request.path.name);
    return nlohmann::json::object();
  }
  Status watch(const WatchRequest&, const TakeEvent&, const std::stop_token&) override { return {}; }

  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    return names_;
  }
  std::vector<std::string> wait_for(std::size_t count) const {
    for (int i = 0; i < 4000 && names().size() < count; ++i) std::this_thread::sleep_for(5ms);
    return names();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};

ConditionWriter::Told waits(const std::string& name) {
  return {.object = {kPods, "team", name}, .uid = "uid-" + name, .message = "there is no room"};
}

TEST(ConditionWriter, WhoComesNowIsToldBeforeTheManyThatWaitForAWord) {
  Written api;
  ConditionWriter writer(api, {.between = 20ms});
  std::vector<ConditionWriter::Told> all;
  for (int i = 0; i < 200; ++i) all.push_back(waits(fmt::format("old-{:03}", i)));
  writer.update(all);
  EXPECT_EQ(api.wait_for(1).front(), "old-000");
  all.push_back(waits("new"));
  writer.update(all);
  const auto before = api.names().size();
  const auto names = api.wait_for(before + 3);
  EXPECT_TRUE(std::ranges::find(names, "new") != names.end()) << names.back();
}

}  // namespace
}  // namespace drover::kube
