#include "image/source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <filesystem>

#include "base/files.h"
#include "image/archive.h"
#include "image/layout.h"
#include "image/platform.h"
#include "image/text.h"

namespace drover::image {
namespace {

using Kind = Reference::Kind;

Failure no_image(const std::string& path, std::string_view why, std::string hint) {
  return fail(ErrorKind::kInvalid, fmt::format("'{}' {}", printable(path), why), std::move(hint));
}

Result<Source> open_root_folder(const std::string& path, const Reader& reader) {
  DROVER_TRY(const auto folder, reader.open_folder(path));
  struct statfs system{};
  if (::fstatfs(folder.get(), &system) != 0)
    return fail_errno(fmt::format("Failed to look at '{}'", printable(path)), errno);
  if (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC)
    return no_image(path, "belongs to the kernel and is no root folder",
                    "name a folder with a root file system");
  DROVER_TRY(const auto opened, Directory::open(descriptor_path(folder.get())));
  DROVER_TRY(const auto names, opened.list());
  if (names.empty()) return no_image(path, "is an empty folder", "name a folder with a root file system");
  std::error_code error;
  auto real_path = std::filesystem::read_symlink(descriptor_path(folder.get()), error).string();
  if (error) return fail_errno(fmt::format("Failed to look at '{}'", printable(path)), error.value());
  return Source{std::move(real_path), nullptr, {}};
}

Result<Source> open_layout(std::unique_ptr<ImageFiles> files, const Reference& reference) {
  if (!files->contains("oci-layout"))
    return no_image(reference.path,
                    "is not an OCI image layout: it has no file 'oci-layout' that can be read",
                    "a folder with a root file system is named 'rootfs:/folder'");
  DROVER_TRY(auto contents, read_layout(*files, reference.tag, architecture_of_machine(), reference.digest));
  return Source{"", std::move(files), std::move(contents)};
}

Result<Source> open_archive(const Reference& reference, const Reader& reader) {
  DROVER_TRY(std::unique_ptr<ImageFiles> files, TarFiles::open_archive(reader, reference.path));
  const bool is_docker = files->contains(kArchiveManifest);
  if (reference.kind == Kind::kOciArchive || (reference.kind == Kind::kPath && !is_docker))
    return open_layout(std::move(files), reference);
  if (!is_docker)
    return no_image(reference.path, "is not a docker-archive: it has no file 'manifest.json'",
                    "an OCI layout in a tar file is named 'oci-archive:/file.tar'");
  DROVER_TRY(auto contents, read_docker_archive(*files, reference.tag, architecture_of_machine()));
  return Source{"", std::move(files), std::move(contents)};
}

Result<Source> open_folder(const Reference& reference, const Reader& reader) {
  DROVER_TRY(std::unique_ptr<ImageFiles> files, FolderFiles::open_folder(reader, reference.path));
  if (reference.kind == Kind::kLayout || files->contains("oci-layout"))
    return open_layout(std::move(files), reference);
  return open_root_folder(reference.path, reader);
}

Result<std::vector<Variant>> read_list(const std::string& path, const Reader& reader) {
  constexpr std::uint64_t kLargestList = 1 << 20;
  DROVER_TRY(const auto file, reader.open_file(AT_FDCWD, path));
  DROVER_TRY(const auto text, read_all(file.fd.get(), path, kLargestList));
  return parse_variant_list(text, fmt::format("'{}'", printable(path)));
}

Result<std::unique_ptr<ImageFiles>> open_files(const std::string& path, bool is_folder,
                                               const Reader& reader) {
  if (is_folder) {
    DROVER_TRY(std::unique_ptr<ImageFiles> files, FolderFiles::open_folder(reader, path));
    return files;
  }
  DROVER_TRY(std::unique_ptr<ImageFiles> files, TarFiles::open_archive(reader, path));
  return files;
}

}  // namespace

Result<std::vector<Variant>> list_variants(const Reference& reference, const Reader& reader) {
  if (reference.kind == Kind::kVariantList) return read_list(reference.path, reader);
  const bool one_image = reference.kind == Kind::kRootFolder || reference.kind == Kind::kDockerArchive ||
                         !reference.digest.empty();
  if (one_image) return std::vector<Variant>{};
  DROVER_TRY(const bool is_folder, reader.is_folder(reference.path));
  DROVER_TRY(const auto files, open_files(reference.path, is_folder, reader));
  if (!files->contains("oci-layout")) return std::vector<Variant>{};
  DROVER_TRY(const auto entries, layout_entries(*files, reference.tag));
  return variants_of(entries,
                     fmt::format("{}:{}{}{}", is_folder ? "oci" : "oci-archive", reference.path,
                                 reference.tag.empty() ? "" : ":", reference.tag),
                     architecture_of_machine());
}

Result<Source> open_source(const Reference& reference, const Reader& reader) {
  if (reference.kind == Kind::kVariantList)
    return no_image(reference.path, "is a list of images, and none was chosen", "");
  DROVER_TRY(const bool is_folder, reader.is_folder(reference.path));
  const bool wants_file = reference.kind == Kind::kDockerArchive || reference.kind == Kind::kOciArchive;
  const bool wants_folder = reference.kind == Kind::kLayout || reference.kind == Kind::kRootFolder;
  if (wants_file && is_folder) return no_image(reference.path, "is a folder, not an archive", "");
  if (wants_folder && !is_folder) return no_image(reference.path, "is a file, not a folder", "");
  if (!is_folder) return open_archive(reference, reader);
  if (reference.kind == Kind::kRootFolder) return open_root_folder(reference.path, reader);
  return open_folder(reference, reader);
}

}  // namespace drover::image
