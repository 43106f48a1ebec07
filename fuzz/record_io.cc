#include "api/mesos/record_io.h"

#include "fuzz.h"

/// The stream in one piece and byte by byte gives the same records, and so does what they are written as
/// again.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  constexpr std::size_t kLongest = 4096;
  const auto stream = fuzz::text_of(data, size);
  api::mesos::RecordDecoder whole(kLongest);
  const auto records = whole.feed(stream);
  api::mesos::RecordDecoder pieces(kLongest);
  std::vector<std::string> gathered;
  bool broken = false;
  for (std::size_t i = 0; i < size && !broken; ++i) {
    auto some = pieces.feed(stream.substr(i, 1));
    broken = !some;
    if (some) gathered.insert(gathered.end(), some->begin(), some->end());
  }
  fuzz::require(broken == !records);
  if (!records) return 0;
  fuzz::require(gathered == *records);
  std::string written;
  for (const auto& record : *records) written += api::mesos::encode_record(record);
  api::mesos::RecordDecoder again(kLongest);
  fuzz::require(again.feed(written) == *records && again.between_records());
  return 0;
}
