#pragma once

// Who has arranged what on this machine, and what of it has to be put back: the content of a file that is
// written before anything is done. Values; pure.

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "share/arrangement.h"

namespace drover::share {

/// What is changed on a GPU, or about to be.
struct Changed {
  bool exclusive = false;  ///< its compute mode, which was the default one
  bool interval = false;   ///< of time slices: it is the driver's own no more

  bool empty() const { return !exclusive && !interval; }
  bool operator==(const Changed&) const = default;
};

struct Ledger {
  std::map<std::string, Arrangement> owners;
  std::map<std::string, Changed> gpus;  ///< by UUID

  bool operator==(const Ledger&) const = default;
};

std::string write_ledger(const Ledger& ledger);
/// kCorrupt for anything else than what write_ledger() makes.
Result<Ledger> read_ledger(std::string_view text);

/// Whether the owner can have that beside the others. kConflict names the GPU: it has one interval at a time,
/// and MPS for one owner only, beside whom nobody arranges anything.
Status check_room(const Ledger& ledger, const std::string& owner, const Arrangement& wanted);

/// Whether somebody wants MPS there, or another interval than the default one.
bool wants_mps(const Ledger& ledger, const std::string& gpu);
bool wants_interval(const Ledger& ledger, const std::string& gpu);

/// Whether it can be an owner's name, and so a folder's: letters, digits, '-', '.' and '_', a letter first.
bool is_owner(std::string_view name);

}  // namespace drover::share
