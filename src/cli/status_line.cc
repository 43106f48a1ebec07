#include "cli/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/context.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;
constexpr const char* kWipe = "\r\033[K";

std::size_t width_of(int descriptor) {
  winsize size{};
  const bool told = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : kUsualWidth;
}

/// At most so many characters of UTF-8.
std::string cut(const std::string& text, std::size_t most) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U && ++count > most) return text.substr(0, i);
  return text;
}

}  // namespace

std::string progress_words(const nlohmann::json& record, int place) {
  const auto state = record.value("state", "");
  const auto reason = record.value("reason", "");
  if (state == "starting") return reason.empty() ? "starting" : reason;
  if (state != "queued") return "";
  const auto where = place > 0 ? fmt::format("waiting at place {}", place) : std::string("waiting");
  return reason.empty() ? where : where + ": " + reason;
}

StatusLine::StatusLine(int descriptor)
    : descriptor_(descriptor), terminal_(::isatty(descriptor) == 1), colours_(colours(descriptor)) {}

void StatusLine::show(const std::string& words) {
  if (!terminal_ || words == shown_) return;
  shown_ = words;
  // The last column stays free: terminals differ in what they do when it is written.
  const auto text = cut(printable(words), std::max<std::size_t>(width_of(descriptor_), 2) - 1);
  write_all(descriptor_,
            colours_ && !text.empty() ? fmt::format("{}\033[2m{}\033[0m", kWipe, text) : kWipe + text,
            "standard error");
}

}  // namespace drover::cli
