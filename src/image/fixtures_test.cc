#include "image/fixtures.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "image/digest.h"
#include "image/document.h"

namespace drover::image::testing {
namespace {

constexpr std::size_t kTarBlock = 512;

void put(std::string& header, std::size_t offset, std::size_t width, std::string_view value) {
  header.replace(offset, std::min(width, value.size()), value.substr(0, width));
}

std::string tar_entry(const Item& item) {
  std::string header(kTarBlock, '\0');
  put(header, 0, 100, item.path);
  put(header, 100, 8, fmt::format("{:07o}", item.mode));
  put(header, 108, 8, fmt::format("{:07o}", item.uid));
  put(header, 116, 8, fmt::format("{:07o}", item.gid));
  put(header, 124, 12, fmt::format("{:011o}", item.content.size()));
  put(header, 136, 12, fmt::format("{:011o}", 1'500'000'000));
  put(header, 148, 8, "        ");
  header[156] = item.type;
  put(header, 157, 100, item.link);
  put(header, 257, 8, std::string_view("ustar\00000", 8));
  put(header, 329, 8, "0000001");
  put(header, 337, 8, "0000003");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(header, 148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
  auto content = item.content;
  content.resize((content.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  return header + content;
}

/// "LENGTH key=value\n", where LENGTH counts itself.
std::string pax_record(const std::string& key, const std::string& value) {
  const auto rest = fmt::format(" {}={}\n", key, value);
  auto size = rest.size() + 1;
  while (fmt::format("{}", size).size() + rest.size() != size) ++size;
  return fmt::format("{}{}", size, rest);
}

std::string compress(std::string_view bytes, int (*filter)(archive*)) {
  std::string packed(bytes.size() + bytes.size() / 8 + 65536, '\0');
  std::size_t used = 0;
  auto* writer = ::archive_write_new();
  ::archive_write_set_format_raw(writer);
  filter(writer);
  ::archive_write_set_filter_option(writer, "gzip", "timestamp", nullptr);  // the same bytes each time
  ::archive_write_set_bytes_in_last_block(writer, 1);
  ::archive_write_open_memory(writer, packed.data(), packed.size(), &used);
  auto* entry = ::archive_entry_new();
  ::archive_entry_set_filetype(entry, AE_IFREG);
  ::archive_write_header(writer, entry);
  ::archive_write_data(writer, bytes.data(), bytes.size());
  ::archive_entry_free(entry);
  ::archive_write_close(writer);
  ::archive_write_free(writer);
  packed.resize(used);
  return packed;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "drover-image-XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Item file(std::string path, std::string content, unsigned mode) {
  return {.path = std::move(path), .content = std::move(content), .mode = mode};
}
Item folder(std::string path, unsigned mode) {
  return {.path = std::move(path), .type = '5', .mode = mode};
}
Item symlink(std::string path, std::string target) {
  return {.path = std::move(path), .type = '2', .link = std::move(target), .mode = 0777};
}
Item hard_link(std::string path, std::string target) {
  return {.path = std::move(path), .type = '1', .link = std::move(target)};
}

std::string make_tar(const std::vector<Item>& items) {
  std::string tar;
  for (const auto& item : items) {
    std::string records;
    for (const auto& [key, value] : item.pax) records += pax_record(key, value);
    if (!records.empty()) tar += tar_entry({.path = "pax", .type = 'x', .content = records});
    tar += tar_entry(item);
  }
  return tar + std::string(2 * kTarBlock, '\0');
}

std::string gzip(std::string_view bytes) {
  return compress(bytes, ::archive_write_add_filter_gzip);
}
std::string zstd(std::string_view bytes) {
  return compress(bytes, ::archive_write_add_filter_zstd);
}

void write(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

User this_user() {
  return user_of(::geteuid(), ::getegid()).value();
}

LayoutBuilder::LayoutBuilder(std::string folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_ + "/blobs/sha256");
  write(folder_ + "/oci-layout", R"({"imageLayoutVersion": "1.0.0"})");
}

LayoutBuilder::Blob LayoutBuilder::blob(std::string_view bytes) {
  const auto digest = sha256_of(bytes);
  write(blob_path(digest), bytes);
  return {digest, bytes.size()};
}

std::string LayoutBuilder::blob_path(const std::string& digest) const {
  return folder_ + "/blobs/sha256/" + digest.substr(7);
}

nlohmann::json LayoutBuilder::descriptor(const Blob& blob, const std::string& media_type) const {
  return {{"mediaType", media_type}, {"digest", blob.digest}, {"size", blob.size}};
}

nlohmann::json LayoutBuilder::image(const std::vector<std::string>& layers, const nlohmann::json& changes) {
  nlohmann::json config = {{"architecture", architecture()},
                           {"os", "linux"},
                           {"config", {{"Cmd", {"/bin/sh"}}}},
                           {"rootfs", {{"type", "layers"}, {"diff_ids", nlohmann::json::array()}}}};
  auto descriptors = nlohmann::json::array();
  for (const auto& layer : layers) {
    config["rootfs"]["diff_ids"].push_back(sha256_of(layer));
    descriptors.push_back(descriptor(blob(gzip(layer)), "application/vnd.oci.image.layer.v1.tar+gzip"));
  }
  config.merge_patch(changes);
  return manifest(descriptor(blob(config.dump()), "application/vnd.oci.image.config.v1+json"), descriptors);
}

nlohmann::json LayoutBuilder::image(const std::vector<std::string>& layers) {
  return image(layers, nlohmann::json::object());
}

nlohmann::json LayoutBuilder::manifest(const nlohmann::json& config, const nlohmann::json& layers) {
  const nlohmann::json document = {{"schemaVersion", 2}, {"config", config}, {"layers", layers}};
  return descriptor(blob(document.dump()), "application/vnd.oci.image.manifest.v1+json");
}

void LayoutBuilder::index(const std::vector<nlohmann::json>& descriptors) {
  write(folder_ + "/index.json", nlohmann::json({{"schemaVersion", 2}, {"manifests", descriptors}}).dump());
}

nlohmann::json tagged(nlohmann::json descriptor, const std::string& tag) {
  descriptor["annotations"]["org.opencontainers.image.ref.name"] = tag;
  return descriptor;
}

std::string architecture() {
  utsname info{};
  ::uname(&info);
  return go_architecture(info.machine);
}

TEST(Fixtures, WriteArchivesThatTarReads) {
  TemporaryFolder scratch;
  write(scratch / "a.tar.gz", gzip(make_tar({folder("d"), file("d/f", "text"), symlink("l", "d/f")})));
  EXPECT_EQ(std::system(fmt::format("tar -C {0} -xf {0}/a.tar.gz", scratch.path()).c_str()), 0);
  EXPECT_EQ(std::filesystem::file_size(scratch / "d/f"), 4U);
}

}  // namespace drover::image::testing
