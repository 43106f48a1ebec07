#pragma once

// The files that an image is stored in: below a folder, or inside a tar file. Names are relative, with
// slashes. Opening goes with the rights of the Reader that was given. Not thread safe.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "image/reader.h"
#include "image/stream.h"

namespace drover::image {

/// A file of an image, open at its start.
struct ImageFile {
  std::unique_ptr<ByteStream> stream;
  std::uint64_t size = 0;
  std::string identity;  ///< as OpenFile's, and inside a tar also the name
};

class ImageFiles {
 public:
  virtual ~ImageFiles() = default;
  virtual Result<ImageFile> open(const std::string& name) const = 0;
  virtual bool contains(const std::string& name) const = 0;
  /// A small file as a whole.
  Result<std::string> read(const std::string& name, std::uint64_t limit) const;
};

class FolderFiles : public ImageFiles {
 public:
  static Result<std::unique_ptr<FolderFiles>> open_folder(const Reader& reader, const std::string& path);
  Result<ImageFile> open(const std::string& name) const override;
  bool contains(const std::string& name) const override;

 private:
  FolderFiles(Reader reader, UniqueFd folder) : reader_(std::move(reader)), folder_(std::move(folder)) {}
  Reader reader_;
  UniqueFd folder_;
};

/// A plain tar file; its members are found by seeking. Links between members are followed inside the archive
/// only.
class TarFiles : public ImageFiles {
 public:
  static Result<std::unique_ptr<TarFiles>> open_archive(const Reader& reader, const std::string& path);
  Result<ImageFile> open(const std::string& name) const override;
  bool contains(const std::string& name) const override { return members_.contains(name); }

 private:
  struct Member {
    std::uint64_t index = 0;  ///< how many entries come before it
    std::uint64_t size = 0;
    std::string link;  ///< name of the member that it leads to; "" for a file
  };

  TarFiles(OpenFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Status scan();
  Result<FileStream> stream() const;

  OpenFile file_;
  std::string path_;
  std::map<std::string, Member> members_;  ///< of one name the last counts, as with tar
};

}  // namespace drover::image
