#pragma once

// RecordIO, the framing of live answers in the Mesos APIs: each record is its length in bytes as decimal
// digits, a line feed, and then so many bytes. Pure.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::api::mesos {

std::string encode_record(std::string_view bytes);

/// Takes a stream in pieces of any size. Holds at most one record that is not complete.
class RecordDecoder {
 public:
  explicit RecordDecoder(std::size_t longest) : longest_(longest) {}

  /// The records that became complete. After an error the stream is lost: each further call fails too.
  Result<std::vector<std::string>> feed(std::string_view bytes);
  /// Whether the stream may end here.
  bool between_records() const { return !failed_ && !in_body_ && header_.empty(); }

 private:
  /// Takes the length's digits from the front of `bytes`; true when it is complete.
  Result<bool> read_length(std::string_view& bytes);

  std::size_t longest_;
  std::string header_;
  std::string body_;
  std::size_t missing_ = 0;
  bool in_body_ = false;
  bool failed_ = false;
};

}  // namespace drover::api::mesos
