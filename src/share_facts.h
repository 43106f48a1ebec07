#pragma once

// What `serve` and `kube node` have in common of shares of GPUs: the words of their options, and what their
// metrics tell. Pure.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "metrics/gpu_metrics.h"
#include "share/watch.h"

namespace drover {

/// By the words of --share-offence.
share::Punishment punishment_of(std::string_view offence);

/// Adds the figures of shares. Those of one allowance have it together; `owner_of` says whose a task of the
/// watch is, and is empty for those that are not told of.
void add_shares(const share::Figures& figures,
                const std::function<std::optional<metrics::Owner>(const std::string& task)>& owner_of,
                metrics::MachineFacts& facts);

}  // namespace drover
