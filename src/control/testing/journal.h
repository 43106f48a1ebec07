#pragma once

// A journal that lies in memory, for tests.

#include <map>
#include <string>
#include <utility>

#include "control/journal.h"

namespace drover::control::testing {

inline Result<Journaled> decode_journal(const std::map<std::string, std::string>& entries) {
  JournalReader reader;
  for (const auto& [key, text] : entries) DROVER_CHECK_OK(reader.read(key, text));
  return std::move(reader).take();
}

}  // namespace drover::control::testing
