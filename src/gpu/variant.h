#pragma once

// What a variant of an image needs of a machine, whether a machine has it, and which of several variants
// says most of it. Pure; total order, so the same variants and the same machine always give the same choice.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/version.h"
#include "gpu/cpu.h"
#include "gpu/machine_facts.h"

namespace drover::gpu {

/// Which versions will do: any of several spans, such as "390", ">=390,<397" or "5.2, 6.0".
class VersionNeed {
 public:
  /// What a version without an operator means.
  enum class Plain {
    kBranch,   ///< all that begin so: "390" is any driver 390.x
    kAtLeast,  ///< this one or newer: "9.2" of CUDA
    kBinary,   ///< what programs compiled for it run on: "5.2" is 5.2 up to, and without, 6.0
  };
  /// Parts are separated by commas or spaces. Plain versions are alternatives; conditions (= != < <= > >=)
  /// all hold at once, as one more alternative. kInvalid names the part that is not understood.
  static Result<VersionNeed> parse(std::string_view text, Plain plain);

  bool any() const { return spans_.empty(); }
  bool allows(const Version& version) const;
  const std::string& text() const { return text_; }  ///< as it was written; "" when any will do

  /// Whether what this says of `version`, which both allow, is narrower than what the other says.
  bool narrower(const VersionNeed& other, const Version& version) const;

  bool operator==(const VersionNeed& other) const { return text_ == other.text_ && spans_ == other.spans_; }

 private:
  struct Span {
    std::optional<Version> from;
    bool from_itself = true;
    std::optional<Version> to;
    bool to_itself = false;
    std::vector<Version> without;

    bool holds(const Version& version) const;
    bool operator==(const Span&) const = default;
  };
  static bool narrower(const Span& a, const Span& b);
  const Span* narrowest(const Version& version) const;

  std::string text_;
  std::vector<Span> spans_;
};

/// What one variant needs. What is empty is not needed.
struct VariantNeeds {
  std::string name;           ///< for people: "skylake-avx512"
  std::vector<CpuName> cpus;  ///< any of them
  VersionNeed driver;
  VersionNeed cuda;
  VersionNeed compute_capability;  ///< of every GPU that the task gets

  bool operator==(const VariantNeeds& other) const;
};

/// Why it does not fit, as a clause: "this CPU (broadwell) lacks avx512f". nullopt when it fits. `devices`
/// decide about compute capabilities only: a variant that needs one does not fit a task without GPUs.
std::optional<std::string> misfit(const VariantNeeds& needs, const MachineFacts& facts);
/// The same without the GPUs: what holds for all tasks on a machine.
std::optional<std::string> machine_misfit(const VariantNeeds& needs, const MachineFacts& facts);

/// Of two that fit, whether `a` says more of the machine: compute capability first, then driver, CUDA and
/// CPU.
bool more_specific(const VariantNeeds& a, const VariantNeeds& b, const MachineFacts& facts);

struct VariantChoice {
  std::optional<std::size_t> chosen;  ///< none: nothing fits
  std::vector<std::string> misfits;   ///< [i]: why not; "" for those that fit
};
/// Of those that fit the most specific; of equals the first.
VariantChoice choose_variant(const std::vector<VariantNeeds>& variants, const MachineFacts& facts);

/// What is said when none was chosen: kUnsupported, with a reason for each.
Error none_fits(const std::vector<VariantNeeds>& variants, const VariantChoice& choice);

/// The needs in one line: "CPU skylake-avx512, driver >=396"; "any machine".
std::string describe(const VariantNeeds& needs);

}  // namespace drover::gpu
