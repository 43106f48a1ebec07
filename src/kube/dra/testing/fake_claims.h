#pragma once

// Claims at an API server, and the driver's files in memory. A crash is an exception between two steps on
// disk.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kube/dra/preparer.h"

namespace drover::kube::dra {

/// A device of a claim's status; `consumed` as {"share": "500"}.
inline nlohmann::json result_of(const std::string& device, const nlohmann::json& consumed = nullptr,
                                const std::string& share_id = "") {
  nlohmann::json result{
      {"request", "gpus"}, {"driver", "gpu.nvidia.com"}, {"pool", "node1"}, {"device", device}};
  if (!consumed.is_null()) result["consumedCapacity"] = consumed;
  if (!share_id.empty()) result["shareID"] = share_id;
  return result;
}

inline nlohmann::json claim_object(const ClaimReference& reference,
                                   const std::vector<nlohmann::json>& results) {
  return {{"metadata",
           {{"namespace", reference.namespace_name}, {"name", reference.name}, {"uid", reference.uid}}},
          {"status",
           {{"allocation", {{"devices", {{"results", results}}}}},
            {"reservedFor", {{{"resource", "pods"}, {"name", "pod"}, {"uid", "u"}}}}}}};
}

class FakeClaims : public ClaimSource {
 public:
  Result<nlohmann::json> claim(const std::string& namespace_name, const std::string& name) override {
    ++asked;
    if (while_asked) while_asked();
    const std::scoped_lock lock(mutex_);
    if (down) return fail(ErrorKind::kUnavailable, "the API server does not answer");
    const auto found = claims_.find(namespace_name + "/" + name);
    if (found == claims_.end()) return fail(ErrorKind::kNotFound, "there is no such claim");
    return found->second;
  }
  Result<std::vector<nlohmann::json>> claims() override {
    const std::scoped_lock lock(mutex_);
    if (down) return fail(ErrorKind::kUnavailable, "the API server does not answer");
    std::vector<nlohmann::json> all;
    for (const auto& [name, claim] : claims_) all.push_back(claim);
    return all;
  }
  /// Keeps what one manager says, whoever it is.
  Result<nlohmann::json> apply_status(const ClaimReference& reference, const nlohmann::json& status,
                                      const std::string& /*manager*/) override {
    const std::scoped_lock lock(mutex_);
    ++applied;
    if (refusal_) return Failure(*refusal_);
    const auto found = claims_.find(reference.namespace_name + "/" + reference.name);
    if (found == claims_.end()) return fail(ErrorKind::kNotFound, "there is no such claim");
    auto& kept = found->second["status"];
    kept.erase("devices");
    if (keeps_devices) kept.update(status);
    return found->second;
  }
  /// What its status says of its devices.
  nlohmann::json devices(const ClaimReference& reference) {
    const std::scoped_lock lock(mutex_);
    return claims_.at(reference.namespace_name + "/" + reference.name)["status"].value("devices",
                                                                                       nlohmann::json());
  }
  void refuse(std::optional<Error> error) {
    const std::scoped_lock lock(mutex_);
    refusal_ = std::move(error);
  }
  void add(const ClaimReference& reference, const std::vector<nlohmann::json>& results) {
    const std::scoped_lock lock(mutex_);
    claims_[reference.namespace_name + "/" + reference.name] = claim_object(reference, results);
  }
  void add_sole(const ClaimReference& reference, const std::vector<nlohmann::json>& results) {
    add(reference, results);
    const std::scoped_lock lock(mutex_);
    auto& claim = claims_[reference.namespace_name + "/" + reference.name];
    claim["metadata"]["annotations"][kSoleAnnotation] = "true";
  }
  void remove(const ClaimReference& reference) {
    const std::scoped_lock lock(mutex_);
    claims_.erase(reference.namespace_name + "/" + reference.name);
  }

  std::atomic<bool> down = false;
  std::atomic<int> asked = 0;
  std::atomic<int> applied = 0;            ///< tries to
  std::atomic<bool> keeps_devices = true;  ///< as behind its feature gate
  std::function<void()> while_asked;

 private:
  std::mutex mutex_;
  std::map<std::string, nlohmann::json> claims_;
  std::optional<Error> refusal_;
};

struct Crash {};

class FakeClaimFiles : public ClaimFiles {
 public:
  Status remove_unfinished() override { return {}; }
  Result<std::optional<std::string>> read_checkpoint() override { return checkpoint; }
  Status write_checkpoint(const std::string& text) override {
    return step([&] { checkpoint = text; });
  }
  Status set_checkpoint_aside() override {
    return step([&] { aside = std::exchange(checkpoint, std::nullopt); });
  }
  Result<std::map<std::string, std::string>> read_specifications() override { return specifications; }
  Status write_specification(const std::string& uid, const std::string& text) override {
    return step([&] { specifications[uid] = text; });
  }
  Status remove_specification(const std::string& uid) override {
    return step([&] { specifications.erase(uid); });
  }

  Status keep_pages(const std::string& uid, const std::vector<share::Limit>& limits) override {
    return step([&] { pages.emplace(uid, limits); });
  }
  Status remove_pages(const std::string& uid) override {
    return step([&] { pages.erase(uid); });
  }
  Result<std::set<std::string>> list_pages() override {
    std::set<std::string> uids;
    for (const auto& [uid, limits] : pages) uids.insert(uid);
    return uids;
  }
  std::string pages_folder(const std::string& uid) const override { return "/shares/" + uid; }

  std::optional<std::string> checkpoint, aside;
  std::map<std::string, std::vector<share::Limit>> pages;
  std::map<std::string, std::string> specifications;
  int steps = 0;
  std::optional<int> crash_in;  ///< so many half steps: before or after a write
  bool full = false;            ///< the disk

 private:
  void half_step() {
    if (crash_in && (*crash_in)-- == 0) {
      crash_in.reset();
      throw Crash();
    }
  }
  Status step(const std::function<void()>& write) {
    half_step();
    if (full) return fail(ErrorKind::kExhausted, "no space left on the device");
    write();
    ++steps;
    half_step();
    return {};
  }
};

}  // namespace drover::kube::dra
