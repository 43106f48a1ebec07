#include "base/base64.h"
#include "container/docker/answers.h"
#include "container/docker/engine.h"
#include "container/docker/frames.h"
#include "container/docker/pull_progress.h"
#include "fuzz.h"

/// Whatever an engine answers is understood or refused, and frames carry no more than there was.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  using namespace drover::container::docker;
  const auto text = fuzz::text_of(data, size);
  (void)parse_version(text);
  (void)parse_image(text);
  (void)parse_exec(text);
  (void)parse_ids(text);
  (void)parse_shortcomings(text);
  (void)parse_path_stat(encode_base64(text));
  if (const auto code = parse_exit_code(text)) fuzz::require(*code >= 0 && *code <= 255);
  if (const auto state = parse_container(text)) fuzz::require(state->pid >= 0 && state->exit_code <= 255);
  if (const auto image = parse_image_name(text))
    fuzz::require(!image->tag.empty() || text.back() == ':' || text.back() == '@');
  fuzz::require(parse_refusal(text).find('\n') == std::string::npos);
  std::size_t carried = 0;
  FrameReader frames;
  (void)frames.feed(text, [&](std::size_t output, std::string_view bytes) {
    fuzz::require(output < 2);
    carried += bytes.size();
  });
  fuzz::require(carried <= size);
  PullProgress progress("x", {});
  if (progress.read(text)) (void)progress.finish();
  return 0;
}
