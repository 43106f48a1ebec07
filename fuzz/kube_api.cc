#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "kube/client/config.h"
#include "kube/client/object.h"
#include "kube/client/refusal.h"
#include "kube/client/watch_lines.h"

/// Whatever an API server answers, and whatever a kubeconfig says: what is understood can stand in a URL, a
/// header and a message.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  using namespace drover::kube;
  const auto text = fuzz::text_of(data, size);
  const auto one_line = [](std::string_view value) {
    return value.find_first_of("\r\n") == std::string_view::npos;
  };

  if (const auto config = parse_kubeconfig(text, "the input", "/etc/kubernetes")) {
    fuzz::require(config->url.starts_with("http") && one_line(config->url));
    fuzz::require(config->certificate.empty() == config->key.empty());
    for (const auto* file : {&config->authorities.file, &config->key.file, &config->token.file})
      fuzz::require(file->empty() || file->starts_with('/'));
  }
  const auto refusal = read_refusal(500, text);
  fuzz::require(refusal.code == 500 && one_line(refusal.message) && refusal.message.size() < 500);

  const auto path = url_path({kPods, std::string(text), std::string(text), ""});
  fuzz::require(one_line(path) && path.find('?') == std::string::npos && path.find(' ') == std::string::npos);

  std::size_t lines = 0;
  LineReader reader(256);
  (void)reader.feed(text, [&](std::string_view line) -> Status {
    ++lines;
    fuzz::require(line.size() <= 256 && line.find('\n') == std::string_view::npos);
    const auto event = parse_watch_line(line, {kPods});
    if (event && event->type != WatchEventType::kBookmark) fuzz::require(!key_of(*event->object).empty());
    if (!event) fuzz::require(!event.error().message.empty() && one_line(event.error().message));
    return {};
  });
  fuzz::require(lines <= size);
  return 0;
}
