#include "container/docker/init_errors.h"

#include <algorithm>
#include <array>

namespace drover::container::docker {
namespace {

constexpr std::string_view kMark = "drover: ";
constexpr std::array<std::string_view, 3> kBeginnings = {
    "drover: Cannot enter the working folder '", "drover: There is no command '", "drover: The command '"};
constexpr std::size_t kLongestSentence = 16 << 10;
constexpr int kCannotRun = 126;
constexpr int kNoSuchCommand = 127;

/// Whether it could become, or is, such a sentence.
bool begins_sentence(std::string_view text) {
  const auto line_end = text.find('\n');
  return text.size() <= kLongestSentence &&
         (line_end == std::string_view::npos || line_end == text.size() - 1) &&
         std::ranges::any_of(kBeginnings, [&](std::string_view beginning) {
           const auto common = std::min(beginning.size(), text.size());
           return beginning.substr(0, common) == text.substr(0, common);
         });
}

}  // namespace

std::string InitErrors::pass(std::size_t stream, std::string_view bytes) {
  if (passing_ || stream != 1) return std::string(bytes);
  withheld_ += bytes;
  if (begins_sentence(withheld_)) return "";
  passing_ = true;
  return rest();
}

std::optional<Error> InitErrors::failure(int exit_status) const {
  const bool told = withheld_.size() > kMark.size() && withheld_.back() == '\n';
  if (!told || (exit_status != kCannotRun && exit_status != kNoSuchCommand)) return std::nullopt;
  const auto sentence = withheld_.substr(kMark.size(), withheld_.size() - kMark.size() - 1);
  if (withheld_.starts_with(kBeginnings.front()))
    return Error{exit_status == kNoSuchCommand ? ErrorKind::kNotFound : ErrorKind::kPermissionDenied,
                 sentence, "it must be there, and the task's user must be allowed to enter it", ""};
  if (exit_status == kNoSuchCommand)
    return Error{ErrorKind::kNotFound, sentence, "check its spelling, the PATH and the image", ""};
  return Error{ErrorKind::kPermissionDenied, sentence,
               "it must be an executable file that the task's user may run", ""};
}

}  // namespace drover::container::docker
