#include "api/mesos/record_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace drover::api::mesos {
namespace {

constexpr std::size_t kMostDigits = 19;

}  // namespace

std::string encode_record(std::string_view bytes) {
  return fmt::format("{}\n{}", bytes.size(), bytes);
}

Result<bool> RecordDecoder::read_length(std::string_view& bytes) {
  const auto end = bytes.find('\n');
  header_ += bytes.substr(0, std::min(end, kMostDigits + 1));
  const bool digits =
      std::all_of(header_.begin(), header_.end(), [](char c) { return c >= '0' && c <= '9'; });
  const bool complete = end != std::string_view::npos;
  if (!digits || header_.size() > kMostDigits || (complete && header_.empty()))
    return fail(ErrorKind::kInvalid, "A record does not start with its length in decimal digits");
  bytes.remove_prefix(complete ? end + 1 : bytes.size());
  if (!complete) return false;
  std::from_chars(header_.data(), header_.data() + header_.size(), missing_);
  header_.clear();
  if (missing_ > longest_)
    return fail(ErrorKind::kInvalid, fmt::format("A record is longer than {} bytes", longest_));
  return true;
}

Result<std::vector<std::string>> RecordDecoder::feed(std::string_view bytes) {
  if (failed_) return fail(ErrorKind::kInvalid, "The stream of records was broken before");
  std::vector<std::string> records;
  while (in_body_ || !bytes.empty()) {
    if (!in_body_) {
      auto known = read_length(bytes);
      failed_ = !known;
      if (!known) return Failure(known.error());
      if (!*known) break;
      in_body_ = true;
    }
    const auto piece = bytes.substr(0, missing_);
    body_ += piece;
    bytes.remove_prefix(piece.size());
    missing_ -= piece.size();
    if (missing_ != 0) break;
    records.push_back(std::exchange(body_, {}));
    in_body_ = false;
  }
  return records;
}

}  // namespace drover::api::mesos
