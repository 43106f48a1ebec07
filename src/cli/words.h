#pragma once

// How amounts and shares are put for people. Wherever a share is shown, it says whether anything enforces it.
// Pure.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace drover::cli {

/// "1 GPU", "2.5 GPUs"
std::string counted(double number, const char* what);

/// The listing of /v1/gpus by UUID: what is told of a GPU is told by its index.
struct KnownGpus {
  explicit KnownGpus(const nlohmann::json& listing);

  /// "3"; "?" for one that is not listed.
  std::string index(const std::string& uuid) const;
  /// Its model; "" for one that is not listed.
  std::string model(const std::string& uuid) const;

 private:
  std::map<std::string, std::pair<std::string, std::string>> gpus_;
};

/// "0.5": thousandths, without needless digits.
std::string parts(std::int64_t milli);

/// " (counted, not enforced)": the tier of shares, as the API has it in the first of these grants or holders.
/// "" where it does not say, as before they have begun.
std::string tier_words(const nlohmann::json& grants);

/// GPUs that were granted: "0,1", "0.5 of 3 (counted, not enforced)", "8 GiB of 3 (…)". `grants` are those of
/// the API; `share` is the task's gpu_share, or null.
std::string granted(const nlohmann::json& grants, const nlohmann::json& share, const KnownGpus& gpus);
/// " by MPS" for a task whose group has its GPUs so; else "".
std::string mps_words(const nlohmann::json& task);

/// What a task asks for: "2", "0.5 of 1"; "-" for none.
std::string wanted(const nlohmann::json& task);

/// "3 GPUs, 12 CPUs, 24 GiB": those that are there, and not 0 unless `with_zeros`; "-" for none.
std::string amounts(const nlohmann::json& amounts, bool with_zeros);

/// By which people go on with what was submitted: the answer of POST /v1/tasks. The id of the array, of the
/// gang, or of the task.
std::string submitted_id(const nlohmann::json& answer);

}  // namespace drover::cli
