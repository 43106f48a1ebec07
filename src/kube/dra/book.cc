#include "kube/dra/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/decode.h"
#include "base/json_text.h"
#include "base/units.h"
#include "kube/dra/devices.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr const char* kFormat = "drover-dra-checkpoint";
/// No sum of what one file can hold overflows.
constexpr std::int64_t kMostMemory = 1LL << 42;
constexpr std::int64_t kMostMigNumber = 1 << 16;

json json_of(const PreparedDevice& device) {
  const auto& allocated = device.allocated;
  json value{{"request", allocated.request}, {"device", allocated.device}, {"uuid", device.uuid}};
  if (!allocated.share_id.empty()) value["shareId"] = allocated.share_id;
  if (allocated.memory) value["memory"] = *allocated.memory;
  if (allocated.share) value["share"] = *allocated.share;
  if (allocated.admin) value["admin"] = true;
  if (const auto& mig = device.mig)
    value["mig"] = {{"gpu", mig->gpu},
                    {"profile", mig->profile_id},
                    {"start", mig->placement.start},
                    {"size", mig->placement.size},
                    {"made", device.made}};
  return value;
}

gpu::MigPart read_mig(Decoder& value, bool& made) {
  const auto number = [&](const char* name) {
    return static_cast<unsigned>(value.integer(name, 0, kMostMigNumber).value_or(0));
  };
  gpu::MigPart part{value.string("gpu").value_or(""), number("profile"), {number("start"), number("size")}};
  made = value.boolean("made").value_or(false);
  if (part.gpu.empty() || part.placement.size == 0) value.mistake("gpu", "the instance has no place");
  value.finish();
  return part;
}

PreparedDevice read_device(Decoder& value) {
  PreparedDevice device;
  auto& allocated = device.allocated;
  allocated.request = value.string("request").value_or("");
  allocated.device = value.string("device").value_or("");
  device.uuid = value.string("uuid").value_or("");
  allocated.share_id = value.string("shareId").value_or("");
  allocated.memory = value.integer("memory", 0, kMostMemory);
  allocated.share = value.integer("share", 0, kWholeGpu);
  allocated.admin = value.boolean("admin").value_or(false);
  if (auto mig = value.object("mig")) device.mig = read_mig(*mig, device.made);
  if (allocated.device.empty() || device.uuid.empty()) value.mistake("device", "the device is not named");
  value.finish();
  return device;
}

share::Limit read_limit(Decoder& value) {
  share::Limit limit;
  limit.gpu = value.string("gpu").value_or("");
  limit.bytes = static_cast<std::uint64_t>(value.integer("memory", 0, kMostMemory).value_or(0));
  limit.milli = static_cast<int>(value.integer("share", 0, kWholeGpu).value_or(0));
  if (limit.gpu.empty()) value.mistake("gpu", "the GPU is not named");
  value.finish();
  return limit;
}

PreparedClaim read_claim(Decoder& value) {
  PreparedClaim claim;
  claim.reference = {value.string("namespace").value_or(""), value.string("name").value_or(""),
                     value.string("uid").value_or("")};
  for (auto& device : value.objects("devices")) claim.devices.push_back(read_device(device));
  claim.sole = value.boolean("sole").value_or(false);
  if (auto sharing = value.object("sharing")) claim.sharing = share::read_arrangement(*sharing);
  for (auto& limit : value.objects("limits")) claim.limits.push_back(read_limit(limit));
  if (claim.reference.uid.empty()) value.mistake("uid", "the claim has none");
  value.finish();
  return claim;
}

/// What is taken of one GPU.
struct Taken {
  bool whole = false;
  std::int64_t memory = 0;
  std::int64_t share = 0;
  std::string by;  ///< one who has it; "" for nobody
};

void take(Taken& taken, const AllocatedDevice& device, const ClaimReference& by) {
  taken.whole = taken.whole || !device.shared();
  taken.memory += device.memory.value_or(0);
  taken.share += device.share.value_or(0);
  taken.by = to_string(by);
}

bool has_room(const Taken& taken, const AllocatedDevice& wanted, const NodeGpu& gpu) {
  if (taken.by.empty() && !wanted.shared()) return true;
  if (taken.whole || !wanted.shared()) return false;
  __extension__ using Wide = __int128;
  const auto memory = Wide(taken.memory) + wanted.memory.value_or(0);
  const auto share = Wide(taken.share) + wanted.share.value_or(0);
  if (memory > 0 && !gpu.memory_bytes) return false;
  // Both kinds are there while the node goes from one kind of sharing to the other.
  const Wide whole_memory = gpu.memory_bytes.value_or(1);
  if (share > kWholeGpu || memory > whole_memory) return false;
  return share * whole_memory + memory * kWholeGpu <= whole_memory * kWholeGpu;
}

/// How much of a GPU's time goes with so much of its memory.
int milli_of(std::int64_t bytes, std::int64_t memory) {
  __extension__ using Wide = __int128;
  return static_cast<int>(Wide(bytes) * kWholeGpu / memory);
}

const ClaimReference* holder_of_overlap(const Book& book, const gpu::MigPart& part) {
  for (const auto& [uid, other] : book)
    for (const auto& device : other.devices)
      if (device.mig && !device.allocated.admin && device.mig->gpu == part.gpu &&
          device.mig->placement.overlaps(part.placement))
        return &other.reference;
  return nullptr;
}

/// What is counted together: a GPU, or a MIG device.
const std::string& counted_as(const PreparedDevice& device) {
  return device.mig ? device.allocated.device : device.uuid;
}

}  // namespace

std::vector<gpu::MigPart> PreparedClaim::made() const {
  std::vector<gpu::MigPart> parts;
  for (const auto& device : devices)
    if (device.mig && device.made) parts.push_back(*device.mig);
  return parts;
}

Result<std::optional<share::Limit>> share_of(const PreparedDevice& device,
                                             const std::map<std::string, NodeGpu>& gpus) {
  const auto& allocated = device.allocated;
  if (!allocated.shared() || allocated.admin || allocated.share == kWholeGpu) return std::nullopt;
  const auto gpu = gpus.find(allocated.device);
  const auto memory = gpu == gpus.end() ? 0 : gpu->second.memory_bytes.value_or(0);
  if (memory <= 0)
    return fail(ErrorKind::kUnsupported,
                fmt::format("it is not known how much memory the GPU '{}' has", allocated.device));
  const auto bytes = allocated.memory.value_or(memory / kWholeGpu * allocated.share.value_or(0));
  if (bytes >= memory) return std::nullopt;
  return share::Limit{
      .gpu = device.uuid,
      .bytes = static_cast<std::uint64_t>(bytes),
      .milli = allocated.share ? static_cast<int>(*allocated.share) : milli_of(bytes, memory)};
}

Result<std::vector<share::Limit>> limits_of(const PreparedClaim& claim,
                                            const std::map<std::string, NodeGpu>& gpus, std::uint64_t least) {
  std::map<std::string, share::Limit> limits;
  for (const auto& device : claim.devices) {
    DROVER_TRY(const auto share, share_of(device, gpus));
    if (!share) continue;
    auto& limit = limits[device.uuid];
    limit.gpu = device.uuid;
    limit.bytes += share->bytes;
    limit.milli += share->milli;
  }
  if (limits.size() > share::kMostLimits)
    return fail(ErrorKind::kUnsupported,
                fmt::format("it has shares of more than {} GPUs", share::kMostLimits));
  std::vector<share::Limit> all;
  for (auto& [uuid, limit] : limits) {
    if (limit.bytes < least)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("nothing holds programs to less than {} of a GPU", format_bytes(least)));
    limit.milli = std::clamp(limit.milli, 1, kWholeGpu);
    all.push_back(std::move(limit));
  }
  return all;
}

std::string write_book(const Book& book) {
  auto claims = json::array();
  for (const auto& [uid, claim] : book) {
    auto devices = json::array();
    for (const auto& device : claim.devices) devices.push_back(json_of(device));
    claims.push_back({{"uid", uid},
                      {"namespace", claim.reference.namespace_name},
                      {"name", claim.reference.name},
                      {"devices", std::move(devices)}});
    if (claim.sole) claims.back()["sole"] = true;
    if (!claim.sharing.empty()) claims.back()["sharing"] = share::json_of(claim.sharing);
    for (const auto& limit : claim.limits)
      claims.back()["limits"].push_back(
          {{"gpu", limit.gpu}, {"memory", limit.bytes}, {"share", limit.milli}});
  }
  const json document{{"format", kFormat}, {"version", kVersion}, {"claims", std::move(claims)}};
  return to_text(document, 2) + "\n";
}

Result<Book> read_book(std::string_view text) {
  const auto corrupt = [](const Error& error) {
    return fail(ErrorKind::kCorrupt, "the checkpoint of prepared claims cannot be read: " + error.message, "",
                error.path);
  };
  const auto document = parse_json(text, "checkpoint");
  if (!document) return corrupt(document.error());
  std::vector<Error> mistakes;
  Decoder root(*document, mistakes);
  Book book;
  if (root.string("format") != kFormat) root.mistake("format", "it is another program's");
  root.integer("version", kVersion, kVersion);
  for (auto& value : root.objects("claims")) {
    auto claim = read_claim(value);
    const auto uid = claim.reference.uid;
    if (!book.emplace(uid, std::move(claim)).second) value.mistake("uid", "the claim is there twice");
  }
  root.finish();
  if (!mistakes.empty()) return corrupt(join_mistakes(mistakes, "checkpoint"));
  return book;
}

std::set<std::string> gpus_in_use(const Book& book) {
  std::set<std::string> uuids;
  for (const auto& [uid, claim] : book)
    for (const auto& device : claim.devices)
      if (!device.allocated.admin && !device.made) uuids.insert(device.uuid);
  return uuids;
}

Status check_free(const Book& book, const PreparedClaim& claim, const std::map<std::string, NodeGpu>& gpus) {
  std::map<std::string, Taken> taken;
  for (const auto& [uid, other] : book)
    for (const auto& device : other.devices)
      if (!device.allocated.admin) take(taken[counted_as(device)], device.allocated, other.reference);
  for (const auto& device : claim.devices) {
    if (device.allocated.admin) continue;
    const auto gpu = gpus.find(device.allocated.device);
    auto& of_gpu = taken[counted_as(device)];
    if (const auto* holder = device.mig ? holder_of_overlap(book, *device.mig) : nullptr)
      of_gpu.by = to_string(*holder);
    if (gpu == gpus.end() || !has_room(of_gpu, device.allocated, gpu->second))
      return fail(ErrorKind::kConflict,
                  fmt::format("the GPU '{}' ({}) has no room for the claim {}: the claim {} has it",
                              device.allocated.device, device.uuid, to_string(claim.reference),
                              of_gpu.by.empty() ? to_string(claim.reference) : of_gpu.by),
                  "it is prepared as soon as the other one's pod has ended");
    take(of_gpu, device.allocated, claim.reference);
  }
  return {};
}

}  // namespace drover::kube::dra
