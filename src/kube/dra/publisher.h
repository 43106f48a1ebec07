#pragma once

// Keeps the node's ResourceSlices at the API server as they should be. Blocks while the API server answers.
// Not thread safe: one thread at a time.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client/server_version.h"
#include "kube/dra/slices.h"

namespace drover::kube::dra {

/// The ResourceSlices of one driver on one node, at the API server. Every call ends in bounded time.
class SliceApi {
 public:
  virtual ~SliceApi() = default;
  virtual ApiVersion version() const = 0;
  virtual Result<ServerVersion> server_version() = 0;
  /// Of the Node that the slices belong to.
  virtual Result<std::string> node_uid() = 0;
  /// With spec.driver and spec.nodeName of ours: whole objects.
  virtual Result<std::vector<nlohmann::json>> list() = 0;
  /// Both give back what the API server made of it. kConflict when somebody was faster.
  virtual Result<nlohmann::json> create(const nlohmann::json& slice) = 0;
  virtual Result<nlohmann::json> update(const nlohmann::json& slice) = 0;
  /// A slice that is gone already is fine.
  virtual Status remove(const std::string& name) = 0;
};

class Publisher {
 public:
  Publisher(std::shared_ptr<SliceApi> api, std::string driver, std::string node);
  ~Publisher();

  Result<ServerVersion> server_version() { return api_->server_version(); }
  /// Makes the pool have exactly this. After an error the pool may be incomplete, which keeps the
  /// scheduler away from it; the same call again goes on. Says whether anything was written.
  ///
  /// What is there is asked for only the first time and after an error: what changes is written at once.
  Result<bool> publish(const PoolContent& content);
  /// Somebody else may have changed the slices: the next publish() asks what is there.
  void invalidate();

  /// What the API server did not keep of what was written, as of the last publish(): "taints"; sorted. It
  /// drops what its feature gates do not know.
  const std::vector<std::string>& dropped() const { return dropped_; }

 private:
  struct Written;
  struct There;
  Result<bool> publish_once(const PoolContent& content);
  Status refresh();
  Status write(const SliceChanges& changes);
  void remember(const nlohmann::json& sent, const nlohmann::json& kept);
  std::vector<nlohmann::json> as_written() const;

  std::shared_ptr<SliceApi> api_;
  std::string driver_, node_;
  std::unique_ptr<There> there_;            ///< at the API server, as far as is known; null: it is not
  std::map<std::string, Written> written_;  ///< by the slice's name
  std::vector<std::string> dropped_;
};

}  // namespace drover::kube::dra
