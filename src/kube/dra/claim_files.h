#pragma once

// What the driver keeps on disk: one checkpoint of all claims, a CDI specification for each, and the pages
// that hold those with shares to them (share/pages.h). A seam, since what is on disk when the driver dies
// between two steps decides whether a GPU is given twice.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification_folder.h"
#include "share/page_folders.h"

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
  /// Makes the pages unless they are there: containers that run have them, and never see others.
  virtual Status keep_pages(const std::string& uid, const std::vector<share::Limit>& limits) = 0;
  /// Those that are not there are fine.
  virtual Status remove_pages(const std::string& uid) = 0;
  /// Whose pages are there.
  virtual Result<std::set<std::string>> list_pages() = 0;
  /// The folder on the host that has them (share/pages.h).
  virtual std::string pages_folder(const std::string& uid) const = 0;
};

/// Files in folders, which are made when something is written.
class ClaimFolders : public ClaimFiles {
 public:
  /// `plugin` has checkpoint.json; `cdi` has the specifications of the vendor `vendor`, where container
  /// engines look; `shares` has a folder with pages for each claim that needs them.
  ClaimFolders(std::string plugin, std::string cdi, std::string vendor, std::string shares);

  Status remove_unfinished() override;
  Result<std::optional<std::string>> read_checkpoint() override;
  Status write_checkpoint(const std::string& text) override;
  Status set_checkpoint_aside() override;
  Result<std::map<std::string, std::string>> read_specifications() override;
  Status write_specification(const std::string& uid, const std::string& text) override {
    return specifications_.write(uid, text);
  }
  Status remove_specification(const std::string& uid) override { return specifications_.remove(uid); }
  Status keep_pages(const std::string& uid, const std::vector<share::Limit>& limits) override {
    return pages_.keep(uid, limits);
  }
  Status remove_pages(const std::string& uid) override { return pages_.remove(uid); }
  Result<std::set<std::string>> list_pages() override;
  std::string pages_folder(const std::string& uid) const override { return pages_.path(uid); }

 private:
  std::string plugin_;
  cdi::SpecificationFolder specifications_;  ///< "k8s.gpu.nvidia.com-claim_<uid>.json"
  share::PageFolders pages_;
};

/// Whether it can be a claim's uid, and so part of a file's name.
bool is_claim_uid(const std::string& uid);

}  // namespace drover::kube::dra
