#pragma once

// What a claim's configuration asks of the machine for those who share its GPUs, and what its containers get
// for that. Pure.

#include "base/result.h"
#include "cdi/specification.h"
#include "kube/dra/book.h"
#include "share/arrangement.h"
#include "share/mps_daemons.h"

namespace drover::kube::dra {

/// Of a claim whose GPUs are known. kInvalid for what these GPUs cannot do: MPS with a part of a GPU, with
/// what is an administrator's, or with two configurations.
Result<share::Arrangement> arrangement_of(const PreparedClaim& claim);

/// For a container with GPUs of an MPS daemon.
cdi::Edits mps_edits(const share::MpsPlaces& places);

}  // namespace drover::kube::dra
