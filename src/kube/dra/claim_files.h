#pragma once

// What the driver keeps on disk: one checkpoint of all claims, and a CDI specification for each. A seam,
// since what is on disk when the driver dies between two steps decides whether a GPU is given twice.

#include <map>
#include <optional>
#include <string>

#include "base/result.h"

namespace drover::kube::dra {

/// Every write is whole or absent, and durable when it returns. Not thread safe.
class ClaimFiles {
 public:
  virtual ~ClaimFiles() = default;
  /// What a driver that was killed had begun to write. For the one that takes its place.
  virtual Status remove_unfinished() = 0;
  /// nullopt when there is none. kCorrupt for what can never be read: a folder, or a file that is too large.
  virtual Result<std::optional<std::string>> read_checkpoint() = 0;
  virtual Status write_checkpoint(const std::string& text) = 0;
  /// Keeps one that cannot be read, under another name.
  virtual Status set_checkpoint_aside() = 0;
  /// The specifications that are there, by the claim's uid.
  virtual Result<std::map<std::string, std::string>> read_specifications() = 0;
  virtual Status write_specification(const std::string& uid, const std::string& text) = 0;
  /// One that is not there is fine.
  virtual Status remove_specification(const std::string& uid) = 0;
};

/// Files in folders, which are made when something is written.
class ClaimFolders : public ClaimFiles {
 public:
  /// `plugin` has checkpoint.json; `cdi` has the specifications of the vendor `vendor`, where container
  /// engines look.
  ClaimFolders(std::string plugin, std::string cdi, std::string vendor);

  Status remove_unfinished() override;
  Result<std::optional<std::string>> read_checkpoint() override;
  Status write_checkpoint(const std::string& text) override;
  Status set_checkpoint_aside() override;
  Result<std::map<std::string, std::string>> read_specifications() override;
  Status write_specification(const std::string& uid, const std::string& text) override;
  Status remove_specification(const std::string& uid) override;

 private:
  std::string plugin_, cdi_;
  std::string prefix_;  ///< of specifications: "k8s.gpu.nvidia.com-claim_"
};

/// Whether it can be a claim's uid, and so part of a file's name.
bool is_claim_uid(const std::string& uid);

}  // namespace drover::kube::dra
