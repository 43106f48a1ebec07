#pragma once

// FakeSlices for a driver with threads. Thread safe, but for what a test sets before they begin.

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/dra/testing/fake_slices.h"

namespace drover::kube::dra {

class LockedSlices : public FakeSlices {
 public:
  Result<std::vector<nlohmann::json>> list() override {
    const std::scoped_lock lock(mutex);
    return FakeSlices::list();
  }
  Result<nlohmann::json> create(const nlohmann::json& slice) override {
    const std::scoped_lock lock(mutex);
    return FakeSlices::create(slice);
  }
  Result<nlohmann::json> update(const nlohmann::json& slice) override {
    const std::scoped_lock lock(mutex);
    return FakeSlices::update(slice);
  }
  Result<ServerVersion> server_version() override {
    const std::scoped_lock lock(mutex);
    return FakeSlices::server_version();
  }
  void set_server(std::optional<ServerVersion> version) {
    const std::scoped_lock lock(mutex);
    server = version;
  }
  std::optional<std::set<std::string>> seen() const {
    const std::scoped_lock lock(mutex);
    return slices.empty() ? std::nullopt : pool();
  }
  std::string text() const {
    const std::scoped_lock lock(mutex);
    return nlohmann::json(slices).dump();
  }
  void wipe() {
    const std::scoped_lock lock(mutex);
    slices.clear();
  }
  mutable std::mutex mutex;
};

}  // namespace drover::kube::dra
