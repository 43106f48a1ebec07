#include "sim/faults.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "sim/required.h"

namespace drover::sim {
namespace {

using nlohmann::json;

constexpr auto kReadAgainAfter = std::chrono::milliseconds(5);
constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;
constexpr std::int64_t kMaxUnsigned = 0xFFFFFFFF;
constexpr std::int64_t kMaxInstance = 255;
constexpr std::int64_t kMaxPosition = 63;
constexpr std::int64_t kMaxSlowMs = std::int64_t{3600} * 1000;

/// By NVML's number.
constexpr std::array kRecoveryActions{"none", "reset", "reboot", "drain-p2p", "drain-and-reset"};

EccCounts decode_counts(Decoder& ecc, const std::string& name) {
  EccCounts counts;
  if (auto decoder = ecc.object(name)) {
    counts.corrected = static_cast<std::uint64_t>(decoder->integer("corrected", 0, kMaxCount).value_or(0));
    counts.uncorrected =
        static_cast<std::uint64_t>(decoder->integer("uncorrected", 0, kMaxCount).value_or(0));
    decoder->finish();
  }
  return counts;
}

void decode_memory_faults(Decoder& decoder, GpuFaults& faults) {
  if (auto ecc = decoder.object("ecc")) {
    faults.ecc_volatile = decode_counts(*ecc, "volatile");
    faults.ecc_aggregate = decode_counts(*ecc, "aggregate");
    ecc->finish();
  }
  if (auto retired = decoder.object("retired_pages")) {
    faults.retired.single_bit = static_cast<std::uint64_t>(retired->integer("single_bit", 0, 64).value_or(0));
    faults.retired.double_bit = static_cast<std::uint64_t>(retired->integer("double_bit", 0, 64).value_or(0));
    faults.retired.pending = retired->boolean("pending").value_or(false);
    retired->finish();
  }
  if (auto rows = decoder.object("remapped_rows")) {
    faults.remapped.corrected = static_cast<unsigned>(rows->integer("corrected", 0, 512).value_or(0));
    faults.remapped.uncorrected = static_cast<unsigned>(rows->integer("uncorrected", 0, 512).value_or(0));
    faults.remapped.pending = rows->boolean("pending").value_or(false);
    faults.remapped.failed = rows->boolean("failed").value_or(false);
    rows->finish();
  }
}

template <typename Number>
Number natural(Decoder& decoder, const char* name, std::int64_t most) {
  return static_cast<Number>(decoder.integer(name, 0, most).value_or(0));
}

/// `multiprocessors` is how they are called there.
std::optional<Utilization> decode_utilization(Decoder& decoder, const char* multiprocessors) {
  auto utilization = decoder.object("utilization");
  if (!utilization) return std::nullopt;
  const auto percent = [&](const char* name) { return natural<unsigned>(*utilization, name, 100); };
  const Utilization decoded{percent(multiprocessors), percent("memory"), percent("encoder"),
                            percent("decoder")};
  utilization->finish();
  return decoded;
}

std::optional<unsigned> decode_instance(Decoder& decoder, const char* name) {
  const auto id = decoder.integer(name, 0, kMaxInstance);
  return id ? std::optional(static_cast<unsigned>(*id)) : std::nullopt;
}

void decode_load(Decoder& decoder, std::vector<Error>& errors, GpuFaults& faults) {
  if (const auto degrees = decoder.integer("temperature", 0, 255))
    faults.temperature_c = static_cast<int>(*degrees);
  if (const auto degrees = decoder.integer("memory_temperature", 0, 255))
    faults.memory_temperature_c = static_cast<int>(*degrees);
  faults.utilization = decode_utilization(decoder, "gpu");
  for (auto& process : decoder.objects("processes")) {
    const Required required(process, errors);
    faults.processes.push_back({required.integer<unsigned>("pid", 1, 1 << 22),
                                required.integer<std::uint64_t>("memory_mib", 0, 1 << 24),
                                decode_utilization(process, "sm"), decode_instance(process, "gpu_instance"),
                                decode_instance(process, "compute_instance")});
    process.finish();
  }
  if (auto pcie = decoder.object("pcie")) {
    faults.pcie = {natural<unsigned>(*pcie, "replays", kMaxUnsigned),
                   natural<unsigned>(*pcie, "sent_kb", kMaxUnsigned),
                   natural<unsigned>(*pcie, "received_kb", kMaxUnsigned)};
    pcie->finish();
  }
  if (auto nvlink = decoder.object("nvlink")) {
    faults.nvlink = {natural<std::uint64_t>(*nvlink, "sent_kib", kMaxCount),
                     natural<std::uint64_t>(*nvlink, "received_kib", kMaxCount)};
    nvlink->finish();
  }
}

/// 79, or {xid: 79, gpu_instance: 3, compute_instance: 0, told_at: 7}.
std::optional<Xid> decode_xid(const json& value, const std::string& path, std::vector<Error>& errors) {
  if (!value.is_object())
    return value.is_number_integer() && value.get<std::int64_t>() > 0
               ? std::optional(Xid{.number = value.get<std::uint64_t>()})
               : std::nullopt;
  Decoder decoder(value, errors, path);
  Xid xid{.number = Required(decoder, errors).integer<std::uint64_t>("xid", 1, kMaxCount)};
  xid.gpu_instance = decode_instance(decoder, "gpu_instance");
  xid.compute_instance = decode_instance(decoder, "compute_instance");
  if (const auto position = decoder.integer("told_at", 0, kMaxPosition))
    xid.told_at = static_cast<std::size_t>(*position);
  decoder.finish();
  return xid;
}

/// XIDs and failing calls are collections of numbers, which the Decoder leaves to its caller.
void decode_numbers(const json& value, const std::string& path, std::vector<Error>& errors,
                    GpuFaults& faults) {
  const auto mistake = [&](const std::string& where, const std::string& message) {
    errors.push_back({ErrorKind::kInvalid, message, "", path + where});
  };
  if (const auto xids = value.find("xid"); xids != value.end() && !xids->is_null()) {
    if (!xids->is_array()) mistake("/xid", "expected a list of XIDs");
    for (std::size_t i = 0; xids->is_array() && i < xids->size(); ++i) {
      const auto where = "/xid/" + std::to_string(i);
      if (const auto xid = decode_xid((*xids)[i], path + where, errors))
        faults.xids.push_back(*xid);
      else
        mistake(where, "expected an XID's number, or an object with it in 'xid'");
    }
  }
  if (const auto calls = value.find("fail"); calls != value.end() && !calls->is_null()) {
    if (!calls->is_object()) return mistake("/fail", "expected an object of functions and return codes");
    for (const auto& [function, code] : calls->items()) {
      if (function.starts_with("nvml") && code.is_number_integer() && code > 0 && code < 1000)
        faults.fail[function] = code;
      else
        mistake("/fail/" + function, "expected a function of NVML and a return code from 1 to 999");
    }
  }
}

GpuFaults decode_gpu(json value, const std::string& path, std::vector<Error>& errors) {
  GpuFaults faults;
  if (value.is_object()) {
    decode_numbers(value, path, errors, faults);
    value.erase("xid");
    value.erase("fail");
  }
  Decoder decoder(value, errors, path);
  decode_memory_faults(decoder, faults);
  decode_load(decoder, errors, faults);
  faults.lost = decoder.boolean("lost").value_or(false);
  faults.absent = decoder.boolean("absent").value_or(false);
  if (const auto action = decoder.string("recovery_action")) {
    const auto* const found = std::ranges::find(kRecoveryActions, *action);
    if (found == kRecoveryActions.end())
      decoder.mistake("recovery_action", "expected none, reset, reboot, drain-p2p or drain-and-reset");
    else
      faults.recovery_action = static_cast<unsigned>(found - kRecoveryActions.begin());
  }
  faults.slow = std::chrono::milliseconds(decoder.integer("slow_ms", 0, kMaxSlowMs).value_or(0));
  decoder.finish();
  return faults;
}

}  // namespace

std::optional<int> GpuFaults::failure(std::string_view function) const {
  auto found = fail.find(function);
  if (found == fail.end()) found = fail.find(function.substr(0, function.rfind("_v")));
  return found == fail.end() ? std::nullopt : std::optional(found->second);
}

Result<Faults> decode_faults(const json& document, const Profile& profile, std::string_view what) {
  Faults faults(profile.gpus.size());
  if (document.is_null()) return faults;
  if (!document.is_object())
    return fail(ErrorKind::kInvalid, std::string(what) + ": expected an object with a key per GPU");
  std::vector<Error> errors;
  std::vector<bool> seen(profile.gpus.size());
  for (const auto& [key, value] : document.items()) {
    const auto position = gpu_named(profile, key);
    if (!position) {
      errors.push_back(
          {ErrorKind::kInvalid, "no such GPU", "name it by position, UUID or PCI address", "/" + key});
    } else if (seen[*position]) {
      errors.push_back({ErrorKind::kInvalid, "this GPU stands here twice", "", "/" + key});
    } else {
      seen[*position] = true;
      if (!value.is_null()) faults[*position] = decode_gpu(value, "/" + key, errors);
    }
  }
  if (!errors.empty()) return Failure(join_mistakes(errors, what));
  return faults;
}

FaultFile::FaultFile(std::filesystem::path file, const Profile& profile, bool verbose)
    : file_(std::move(file)),
      profile_(&profile),
      verbose_(verbose),
      faults_(std::make_shared<const Faults>(profile.gpus.size())) {}

std::shared_ptr<const Faults> FaultFile::current() {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - read_at_ < kReadAgainAfter) return faults_;
  read_at_ = now;
  if (const auto stamp = FileStamp::of(file_); stamp != stamp_) {
    stamp_ = stamp;
    reload();
  }
  return faults_;
}

void FaultFile::reload() {
  if (stamp_ == FileStamp()) {
    faults_ = std::make_shared<const Faults>(profile_->gpus.size());
    return;
  }
  const auto loaded = read_yaml(file_).and_then(
      [&](const json& document) { return decode_faults(document, *profile_, "'" + file_.string() + "'"); });
  if (loaded)
    faults_ = std::make_shared<const Faults>(*loaded);
  else if (verbose_)
    std::fprintf(stderr, "drover-sim: faults stay as they were: %s\n", to_string(loaded.error()).c_str());
}

}  // namespace drover::sim
