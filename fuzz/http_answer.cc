#include "fuzz.h"
#include "http/client.h"

/// What a server says is understood alike whether it comes at once or in two pieces.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto text = fuzz::text_of(data, size);
  http::AnswerReader whole;
  http::AnswerReader pieces;
  const bool read = !whole.receive(text) && !whole.finish();
  const bool begun = !pieces.receive(text.substr(0, size / 2));
  auto body = pieces.take();
  const bool read_too = begun && !pieces.receive(text.substr(size / 2)) && !pieces.finish();
  fuzz::require(read == read_too);
  if (!read) return 0;
  fuzz::require(whole.status() == pieces.status() && whole.ended() && pieces.ended());
  fuzz::require(whole.take() == body + pieces.take());
  return 0;
}
