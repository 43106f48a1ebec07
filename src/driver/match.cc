#include "driver/match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/shorten.h"
#include "base/version.h"
#include "driver/cuda_drivers.h"
#include "driver/requirement.h"

namespace drover::driver {
namespace {

constexpr const char* kCudaVersion = "CUDA_VERSION";
constexpr const char* kRequireCuda = "NVIDIA_REQUIRE_CUDA";
constexpr const char* kRequire = "NVIDIA_REQUIRE_";
constexpr const char* kRequireJetpack =
    "NVIDIA_REQUIRE_JETPACK";  // of Tegra boards, with a language of its own
constexpr const char* kSkip = "set NVIDIA_DISABLE_REQUIRE=1 to start it all the same";
/// The first kernel driver that takes a newer libcuda above it (NVIDIA, "CUDA Compatibility", forward
/// compatibility).
constexpr std::uint32_t kOldestBelowCompat = 384;

using Variables = std::map<std::string, std::string>;

std::string value_of(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

/// As the container toolkit reads it: strconv.ParseBool.
bool is_true(const std::string& text) {
  constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "TRUE", "true", "True"};
  return std::ranges::find(kTrue, text) != kTrue.end();
}

std::string serves(const gpu::MachineFacts& machine) {
  return machine.cuda.empty() ? newest_cuda(machine.driver) : machine.cuda;
}

/// "driver 396.44, which serves CUDA 9.2 at most"
std::string driver_text(const gpu::MachineFacts& machine) {
  const auto cuda = serves(machine);
  return fmt::format("driver {}{}", machine.driver,
                     cuda.empty() ? "" : fmt::format(", which serves CUDA {} at most", cuda));
}

std::string capability_text(const gpu::ComputeCapability& capability) {
  return fmt::format("{}.{}", capability.major, capability.minor);
}

std::string gpu_text(const gpu::Device& device) {
  std::string text =
      fmt::format("GPU {} ({}", device.index, device.model.empty() ? device.uuid : device.model);
  if (device.compute_capability)
    text += fmt::format(", compute capability {}", capability_text(*device.compute_capability));
  if (!device.brand.empty()) text += fmt::format(", brand {}", device.brand);
  return text + ")";
}

/// Forward compatibility is for data-center and professional cards.
bool takes_compat(const gpu::Device& device) {
  constexpr std::array<std::string_view, 5> kConsumer{"geforce", "geforcertx", "titan", "titanrtx", "nvs"};
  return std::ranges::find(kConsumer, device.brand) == kConsumer.end();
}

std::string newest_version(const std::vector<CarriedLibrary>& libraries) {
  std::string newest;
  for (const auto& library : libraries)
    if (newest.empty() || Version::parse(library.version) > Version::parse(newest)) newest = library.version;
  return newest;
}

class Matcher {
 public:
  Matcher(const gpu::MachineFacts& machine, const ImageFacts& image) : machine_(machine), image_(image) {
    for (const auto& [name, value] : image.environment) variables_[name] = value;
    if (uses_compat(machine, image.compat)) compat_ = newest_version(image.compat);
  }

  Status check() const {
    DROVER_CHECK_OK(check_carried());
    if (is_true(value_of(variables_, "NVIDIA_DISABLE_REQUIRE"))) return {};
    DROVER_CHECK_OK(check_requirements());
    return check_cuda_version();
  }

 private:
  std::string newest_served() const { return compat_.empty() ? serves(machine_) : newest_cuda(compat_); }

  Failure cannot_tell() const {
    return fail(ErrorKind::kUnsupported, "the machine does not tell the version of its driver",
                "look at 'drover doctor'");
  }

  /// The image's own driver must be the kernel's: another one refuses to work, wherever it comes first.
  Status check_carried() const {
    if (image_.immutable && image_.carried.empty())
      return fail(
          ErrorKind::kUnsupported,
          fmt::format(
              "the image carries no user-land driver, and with --driver none it gets none: the kernel "
              "runs driver {}",
              machine_.driver.empty() ? "of an unknown version" : machine_.driver),
          fmt::format("leave --driver none out, or use an image with driver {}: libcuda.so.{} in one of the "
                      "usual library folders",
                      machine_.driver, machine_.driver));
    if (machine_.driver.empty()) {
      if (image_.immutable) return cannot_tell();
      return {};
    }
    const auto other = std::ranges::find_if(
        image_.carried, [&](const CarriedLibrary& library) { return library.version != machine_.driver; });
    if (other == image_.carried.end()) return {};
    const auto use = fmt::format("use an image with driver {}, or a machine with driver {}", machine_.driver,
                                 other->version);
    return fail(ErrorKind::kUnsupported,
                fmt::format("the image carries user-land driver {} ('{}'), and the kernel runs driver {}",
                            other->version, other->path, machine_.driver),
                image_.immutable
                    ? use + ", or leave --driver none out with an image that carries none"
                    : "take the driver out of the image, which gets the machine's own, or " + use);
  }

  RequirementFacts facts_of(const gpu::Device* device) const {
    RequirementFacts facts{.cuda = newest_served(), .driver = machine_.driver};
    if (device == nullptr) return facts;
    if (device->compute_capability) facts.arch = capability_text(*device->compute_capability);
    facts.brand = device->brand;
    return facts;
  }

  Status check_requirements() const {
    for (const auto& [name, text] : variables_) {
      if (!name.starts_with(kRequire) || name.starts_with(kRequireJetpack)) continue;
      auto requirement = Requirement::parse(text);
      if (!requirement) {
        auto error = context(requirement.error(), name);
        error.hint += fmt::format("{}{}", error.hint.empty() ? "" : "; ", kSkip);
        return Failure(std::move(error));
      }
      for (const auto& device : machine_.devices)
        if (!requirement->met_by(facts_of(&device))) return unmet(name, text, device);
    }
    return {};
  }

  Failure unmet(const std::string& name, const std::string& text, const gpu::Device& device) const {
    return fail(ErrorKind::kUnsupported,
                fmt::format("the image requires '{}' ({}), and this machine has {}, and {}",
                            shortened(text, 160), name, driver_text(machine_), gpu_text(device)),
                fmt::format("{}, or {}", way_out(built_for()), kSkip));
  }

  /// The CUDA that the image was built for; none when it does not say, or not in numbers.
  std::optional<Version> built_for() const {
    auto text = value_of(variables_, kCudaVersion);
    if (text.starts_with('v')) text.erase(0, 1);
    auto version = Version::parse(text);
    if (!version) return std::nullopt;
    return Version::parse(fmt::format("{}.{}", version->major(), version->minor()));
  }

  std::string way_out(const std::optional<Version>& cuda) const {
    std::vector<std::string> ways;
    const auto driver = cuda ? oldest_driver_for(*cuda) : "";
    const bool too_old = !driver.empty() && Version::parse(machine_.driver) < Version::parse(driver);
    if (too_old) ways.push_back(fmt::format("use a machine with driver {} or newer", driver));
    if (const auto served = serves(machine_); !served.empty())
      ways.push_back(fmt::format("use an image for CUDA {} or older", served));
    if (too_old && std::ranges::all_of(machine_.devices, takes_compat))
      ways.emplace_back("add CUDA's forward compatibility package (cuda-compat) to the image");
    if (ways.empty()) ways.emplace_back("use an image for this machine's GPUs and driver");
    return fmt::format("{}", fmt::join(ways, ", or "));
  }

  /// NVIDIA's own tools go by CUDA_VERSION only where nothing else is required, and so does this.
  Status check_cuda_version() const {
    const auto text = value_of(variables_, kCudaVersion);
    if (text.empty()) return {};
    const auto cuda = built_for();
    const bool decides = value_of(variables_, kRequireCuda).empty();
    if (!cuda) {
      if (!decides) return {};
      return fail(
          ErrorKind::kInvalid,
          fmt::format("the image's {} is '{}', which is no version", kCudaVersion, shortened(text, 80)),
          fmt::format("it should be like '12.2.0'; {}", kSkip));
    }
    if (decides && !machine_.driver.empty() && !runs(*cuda))
      return fail(ErrorKind::kUnsupported,
                  fmt::format("the image is for CUDA {}, and this machine has {}{}", text,
                              driver_text(machine_), useless_compat()),
                  fmt::format("{}, or {}", way_out(cuda), kSkip));
    return check_capabilities(*cuda, text);
  }

  bool runs(const Version& cuda) const {
    return runs_cuda(machine_.driver, machine_.cuda, cuda) ||
           (!compat_.empty() && runs_cuda(compat_, "", cuda));
  }

  std::string useless_compat() const {
    if (image_.compat.empty()) return "";
    const auto version = newest_version(image_.compat);
    if (!compat_.empty()) return fmt::format("; its forward compatibility package is of driver {}", version);
    return fmt::format("; its forward compatibility package of driver {} does not work here", version);
  }

  Status check_capabilities(const Version& cuda, const std::string& text) const {
    const auto oldest = oldest_capability(cuda);
    for (const auto& device : machine_.devices)
      if (device.compute_capability && *device.compute_capability < oldest)
        return fail(
            ErrorKind::kUnsupported,
            fmt::format("the image is for CUDA {}, which computes on compute capability {} and newer, and "
                        "it was given {}",
                        text, capability_text(oldest), gpu_text(device)),
            fmt::format("ask for GPUs with --gpu-cc {}, or use an image for an older CUDA, or {}",
                        capability_text(oldest), kSkip));
    return {};
  }

  const gpu::MachineFacts& machine_;
  const ImageFacts& image_;
  Variables variables_;  ///< the image's, the last of each name
  std::string compat_;   ///< version of the forward compatibility package, when it is used
};

}  // namespace

bool uses_compat(const gpu::MachineFacts& machine, const std::vector<CarriedLibrary>& compat) {
  const auto kernel = Version::parse(machine.driver);
  const auto newest = Version::parse(newest_version(compat));
  return kernel && newest && newest->major() > kernel->major() && kernel->major() >= kOldestBelowCompat &&
         std::ranges::all_of(machine.devices, takes_compat);
}

Status match(const gpu::MachineFacts& machine, const ImageFacts& image) {
  return Matcher(machine, image).check();
}

}  // namespace drover::driver
