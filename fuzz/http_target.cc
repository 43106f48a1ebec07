#include "api/http.h"
#include "fuzz.h"

/// A path has its segments without slashes in front, and every parameter is in both of the lists.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  api::Request request;
  const auto read = api::parse_target(fuzz::text_of(data, size), request);
  if (!read) {
    fuzz::require(!read.error().message.empty());
    return 0;
  }
  fuzz::require(request.query.size() <= request.query_list.size());
  for (const auto& [name, value] : request.query_list) fuzz::require(request.query.contains(name));
  api::Query query(request);
  (void)query.text("name");
  const auto limit = query.integer("limit", 1, 1000, 10);
  fuzz::require(limit >= 1 && limit <= 1000);
  (void)query.boolean("force", false);
  const auto finished = query.finish();
  if (!finished) fuzz::require(!finished.error().message.empty());
  return 0;
}
