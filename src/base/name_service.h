#pragma once

// How the machine's databases of users and groups (NSS) are asked, and what their answers mean. Blocks.
// Thread safe.

#include <cerrno>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/result.h"

namespace drover {

/// One of getpwnam_r(3), getgrnam_r(3) and their like, with everything but where to put the answer.
template <typename Entry>
using AskNameService = std::function<int(Entry* entry, char* buffer, std::size_t size, Entry** found)>;

/// Of an answer without an entry: false when there is none, kUnavailable when the database cannot say.
Result<bool> no_entry(int error);

/// Asks with as large a buffer as it takes, and gives what was found to `use`. False when there is no such
/// entry; kUnavailable when the database cannot say.
template <typename Entry>
Result<bool> ask_name_service(const AskNameService<Entry>& ask,
                              const std::function<void(const Entry&)>& use) {
  constexpr std::size_t kFirstBuffer = 16 << 10;
  constexpr std::size_t kMostBuffer = 16 << 20;
  for (std::vector<char> buffer(kFirstBuffer);; buffer.resize(2 * buffer.size())) {
    Entry entry{};
    Entry* found = nullptr;
    const int error = ask(&entry, buffer.data(), buffer.size(), &found);
    if (error == EINTR || (error == ERANGE && buffer.size() < kMostBuffer)) continue;
    if (found == nullptr || error != 0) return no_entry(error);
    use(*found);
    return true;
  }
}

}  // namespace drover
