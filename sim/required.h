#pragma once

// Fields that must be there, on top of base's Decoder, which leaves absent ones to its caller. A field that
// is present but wrong is reported once, by the Decoder.

#include <cstdint>
#include <string>
#include <vector>

#include "base/decode.h"

namespace drover::sim {

/// The errors are those that `decoder` collects into.
class Required {
  template <typename Read>
  auto value(const std::string& name, Read read) const {
    const auto mistakes = errors_->size();
    const auto found = read();
    if (!found && errors_->size() == mistakes) decoder_->mistake(name, "is missing");
    return found.value_or(typename decltype(found)::value_type());
  }

 public:
  Required(Decoder& decoder, std::vector<Error>& errors) : decoder_(&decoder), errors_(&errors) {}

  std::string string(const std::string& name) const {
    return value(name, [&] { return decoder_->string(name); });
  }
  template <typename Integer = int>
  Integer integer(const std::string& name, std::int64_t min, std::int64_t max) const {
    return static_cast<Integer>(value(name, [&] { return decoder_->integer(name, min, max); }));
  }
  /// Calls `read(Decoder&, const Required&)` for the nested object, and finishes it.
  template <typename Read>
  void object(const std::string& name, Read read) const {
    auto nested = decoder_->object(name);
    if (!nested) return decoder_->mistake(name, "is missing");
    read(*nested, Required(*nested, *errors_));
    nested->finish();
  }

 private:
  Decoder* decoder_;
  std::vector<Error>* errors_;
};

}  // namespace drover::sim
