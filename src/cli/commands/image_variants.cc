// Which variant of an image a machine takes.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/task_flags.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct VariantOptions {
  std::string image, profile;
  bool json = false;
};

std::string text_or(const json& value, const char* field, const char* otherwise) {
  const auto found = value.find(field);
  return found == value.end() || !found->is_string() ? otherwise : found->get<std::string>();
}

std::string machine_line(const json& answer) {
  const auto profile = text_or(answer, "profile", "");
  return fmt::format("{}: CPU {}, driver {}, CUDA up to {}\n",
                     profile.empty() ? "This machine" : "Simulated machine " + printable(profile),
                     text_or(answer, "cpu", "unknown"), text_or(answer, "driver_version", "none"),
                     text_or(answer, "cuda_version", "none"));
}

std::string case_line(const json& one) {
  const auto gpu = text_or(one, "gpu", "");
  if (gpu.empty()) return "A task without GPUs:\n";
  return fmt::format("A task with GPUs of {} (compute capability {}):\n", printable(gpu),
                     text_or(one, "compute_capability", "unknown"));
}

std::string verdict_text(const json& verdict) {
  if (verdict.value("chosen", false)) return "taken: of those that fit, none says more of the machine";
  return verdict.value("fits", false) ? "fits" : "no: " + verdict.value("reason", "");
}

Result<int> variants(Context& context, const VariantOptions& options) {
  if (options.image.empty())
    return fail(ErrorKind::kInvalid, "No image is named", "'drover image variants REF'");
  auto target = fmt::format("/v1/images/{}/variants", percent_encode(absolute_image(options.image)));
  if (!options.profile.empty()) target += "?profile=" + percent_encode(options.profile);
  DROVER_TRY(const auto answer, context.client().get(target));
  const auto& cases = answer.at("cases");
  const bool some = std::ranges::any_of(cases, [](const json& one) { return !one.at("chosen").is_null(); });
  const int status = some || cases.empty() ? 0 : 1;
  if (options.json) {
    print_json(answer);
    return status;
  }
  if (answer.at("variants").empty()) {
    print("It is a single image: there is nothing to choose\n");
    return status;
  }
  std::string text = machine_line(answer);
  for (const auto& one : cases) {
    Table table({"VARIANT", "NEEDS", "VERDICT"});
    for (std::size_t i = 0; i < one.at("verdicts").size(); ++i)
      table.add({one["verdicts"][i].value("name", ""), answer["variants"][i].value("needs", ""),
                 verdict_text(one["verdicts"][i])});
    text += case_line(one) + shown(table);
  }
  print(text);
  return status;
}

}  // namespace

void add_image_variants(CLI::App& image, Context& context) {
  auto options = std::make_shared<VariantOptions>();
  auto* command = image.add_subcommand(
      "variants", "Show which variant of an image a machine takes, and why not the others");
  command->add_option("image", options->image, "The image: an annotated index, or variants:LIST")
      ->required()
      ->type_name("REF");
  command->add_option("--profile", options->profile, "For this simulated machine instead")
      ->type_name("PROFILE");
  command->add_flag("--json", options->json, "Print JSON");
  on_call(command, context, options, variants);
}

}  // namespace drover::cli
