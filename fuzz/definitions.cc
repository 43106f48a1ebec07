#include "cli/definitions/definition.h"
#include "fuzz.h"

/// Every mistake can be shown, and stands somewhere in the text.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto text = fuzz::text_of(data, size);
  const TimePoint now(std::chrono::hours(24 * 365 * 56));
  auto definitions = cli::read_definitions("app.yaml", "/folder", text, now);
  cli::find_doubles(definitions);
  for (const auto& finding : definitions.findings) {
    fuzz::require(!finding.mistake.message.empty() && !cli::render(finding).empty());
    fuzz::require(cli::line_of(text, finding.mistake.place.line) == finding.line);
    (void)cli::to_json(finding);
  }
  for (const auto& warning : definitions.warnings) {
    fuzz::require(!cli::render_warning(warning).empty());
    fuzz::require(cli::line_of(text, warning.mistake.place.line) == warning.line);
  }
  for (const auto& definition : definitions.all)
    if (definitions.findings.empty()) fuzz::require(!definition.name.empty());
  return 0;
}
