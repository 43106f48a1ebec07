#pragma once

// An API server that knows only ResourceSlices, and what a scheduler makes of them. Not thread safe.

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/dra/publisher.h"

namespace drover::kube::dra {

class FakeSlices : public SliceApi {
 public:
  ApiVersion version() const override { return api_version; }
  Result<ServerVersion> server_version() override {
    if (down || !server) return fail(ErrorKind::kUnavailable, "the API server does not answer");
    return *server;
  }
  Result<std::string> node_uid() override { return uid; }
  Result<std::vector<nlohmann::json>> list() override {
    ++lists;
    if (down) return fail(ErrorKind::kUnavailable, "the API server does not answer");
    std::vector<nlohmann::json> all;
    for (const auto& [name, slice] : slices) all.push_back(slice);
    return all;
  }
  Result<nlohmann::json> create(const nlohmann::json& slice) override {
    if (slices.contains(slice["metadata"]["name"])) return fail(ErrorKind::kConflict, "it is there already");
    return store(slice);
  }
  Result<nlohmann::json> update(const nlohmann::json& slice) override {
    const auto found = slices.find(slice["metadata"]["name"]);
    if (found == slices.end()) return fail(ErrorKind::kNotFound, "there is no such slice");
    if (found->second["metadata"]["resourceVersion"] != slice["metadata"]["resourceVersion"])
      return fail(ErrorKind::kConflict, "somebody was faster");
    return store(slice);
  }
  Status remove(const std::string& name) override {
    if (!may_write()) return fail(ErrorKind::kUnavailable, "the API server does not answer");
    slices.erase(name);
    wrote();
    return {};
  }

  /// Names of the devices that a scheduler would choose from; nothing while the pool is incomplete.
  std::optional<std::set<std::string>> pool() const {
    std::int64_t newest = 0;
    for (const auto& [name, slice] : slices) newest = std::max(newest, generation(slice));
    std::set<std::string> devices;
    std::size_t seen = 0;
    std::size_t expected = 0;
    for (const auto& [name, slice] : slices) {
      if (generation(slice) != newest) continue;
      ++seen;
      expected = slice["spec"]["pool"]["resourceSliceCount"];
      for (const auto& device : slice["spec"].value("devices", nlohmann::json::array()))
        devices.insert(device["name"]);
    }
    if (seen != expected) return std::nullopt;
    return devices;
  }

  ApiVersion api_version = ApiVersion::kV1;
  std::optional<ServerVersion> server = ServerVersion{1, 36};
  std::string uid = "node-uid";
  std::map<std::string, nlohmann::json> slices;
  std::set<std::string> unknown_fields;  ///< dropped, as behind feature gates
  std::optional<int> writes_left;        ///< before it stops to answer
  bool down = false;
  int writes = 0;
  int lists = 0;
  std::function<void()> after_write;

 private:
  static std::int64_t generation(const nlohmann::json& slice) { return slice["spec"]["pool"]["generation"]; }
  bool may_write() { return !down && (!writes_left || (*writes_left)-- > 0); }
  void wrote() {
    ++writes;
    if (after_write) after_write();
  }
  Result<nlohmann::json> store(nlohmann::json slice) {
    if (!may_write()) return fail(ErrorKind::kUnavailable, "the API server does not answer");
    if (server < ServerVersion{1, 35} && slice.dump().find(R"("effect":"None")") != std::string::npos)
      return fail(ErrorKind::kInvalid, R"(Unsupported value: "None")");
    for (const auto& field : unknown_fields) {
      slice["spec"].erase(field);
      if (slice["spec"].contains("devices"))
        for (auto& device : slice["spec"]["devices"]) device.erase(field);
    }
    slice["metadata"]["resourceVersion"] = std::to_string(++version_);
    const std::string name = slice["metadata"]["name"];
    slices[name] = slice;
    wrote();
    return slice;
  }

  int version_ = 0;
};

}  // namespace drover::kube::dra
