#include "placement/shape_view.h"

#include <algorithm>

#include "placement/request_hash.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMostViews = 256;

/// Before a node was looked at, and where there is none: it counts for tally 1, which is nobody's obstacle.
constexpr Score kUnseen{kNoScore.high, 1};

/// Which tally a node counts for: 0 when the request fits.
std::size_t code_in(const Score& score) {
  return score < kNoScore ? 0 : score.low;
}

}  // namespace

Evaluation evaluate(const PolicyContext& context, const NodeEntry& entry, const Shape& shape,
                    OptionMemory* memory) {
  const auto& state = entry.state;
  if (state.cordon != 0) return {Obstacle{Dimension::kCordon, 0, state.cordon}};
  if (const auto found = node_obstacle(*entry.node, shape)) return {found};
  if (const auto found = room_obstacle(state, *entry.node, shape)) return {found};
  if (const auto choice = best_on(context, state, shape, Locality::kIgnorePreferredCpus, memory))
    return {std::nullopt, choice->score};
  return {missing_condition(state, shape, memory)};
}

ShapeView::ShapeView(const Request& request)
    : fits_(std::make_shared<KindFits>(request)), shape_(request, fits_) {}

ShapeView::ShapeView(const ShapeView& other)
    : fits_(std::make_shared<KindFits>(*other.fits_)),
      shape_(other.request(), fits_),
      memory_(other.memory_),
      seen_(other.seen_),
      scores_(other.scores_),
      block_best_(other.block_best_),
      tallies_(other.tallies_) {}

void ShapeView::reset(const NodeTable& nodes) {
  const auto padded = nodes.blocks() * kBlockSize;
  scores_.assign(padded, kUnseen);
  block_best_.assign(nodes.blocks(), kUnseen);
  stale_blocks_.clear();
  tallies_.assign(2, {});
}

void ShapeView::update(const NodeTable& nodes, const PolicyContext& context) {
  const auto evaluate_slot = [&](std::size_t slot) {
    set(slot, evaluate(context, nodes.at(slot), shape_, &memory_));
  };
  const bool same_size = scores_.size() == nodes.blocks() * kBlockSize;
  // The scores of all shapes together are more than a cache holds.
  const auto fetch = [&](std::size_t slot) { __builtin_prefetch(&scores_[slot], 1); };
  if (!seen_ || !same_size || !nodes.changes_since(*seen_, fetch) ||
      !nodes.changes_since(*seen_, evaluate_slot)) {
    reset(nodes);
    for (std::size_t slot = 0; slot < nodes.size(); ++slot) evaluate_slot(slot);
  }
  refresh_blocks();
  seen_ = nodes.sequence();
}

std::uint64_t ShapeView::code_of(const std::optional<Obstacle>& obstacle) {
  if (!obstacle) return 0;
  const auto found = std::find_if(tallies_.begin() + 2, tallies_.end(),
                                  [&](const Tally& tally) { return tally.obstacle == *obstacle; });
  const auto code = static_cast<std::uint64_t>(found - tallies_.begin());
  if (found == tallies_.end()) tallies_.push_back({*obstacle, 0, 0});
  return code;
}

void ShapeView::set(std::size_t slot, const Evaluation& evaluation) {
  const auto code = code_of(evaluation.obstacle);
  const auto score = code == 0 ? evaluation.score : Score{kNoScore.high, code};
  auto& now = scores_[slot];
  if (now == score) return;
  --tallies_[code_in(now)].nodes;
  ++tallies_[code].nodes;
  auto& best = block_best_[slot / kBlockSize];
  if (score <= best)
    best = score;
  else if (now == best)
    stale_blocks_.push_back(static_cast<std::uint32_t>(slot / kBlockSize));
  now = score;
}

void ShapeView::refresh_blocks() {
  std::ranges::sort(stale_blocks_);
  const auto rest = std::ranges::unique(stale_blocks_);
  stale_blocks_.erase(rest.begin(), rest.end());
  for (const auto block : stale_blocks_) {
    const auto begin = scores_.begin() + static_cast<std::ptrdiff_t>(block * kBlockSize);
    block_best_[block] = *std::min_element(begin, begin + kBlockSize);
  }
  stale_blocks_.clear();
}

bool ShapeView::exact_for(const PolicyContext& context, const Request& wanted) const {
  return !context.needs_cpus() || wanted.milli_cpus == request().milli_cpus;
}

/// Calls visit(slot) for nodes with room whose score here is below a bound, which visit() may lower.
template <typename Visit>
void ShapeView::for_each_below(const NodeTable& nodes, const Request& wanted, const Score& bound,
                               const Visit& visit) const {
  const auto memory = static_cast<std::int64_t>(wanted.memory_bytes);
  for (std::size_t index = 0; index < block_best_.size(); ++index) {
    if (block_best_[index] >= bound) continue;
    const auto& block = nodes.block(index);
    if (block.most_milli_cpus < wanted.milli_cpus || block.most_memory < memory) continue;
    const auto first = index * kBlockSize;
    for (std::size_t i = 0; i < block.entries.size(); ++i)
      if (scores_[first + i] < bound && block.free_milli_cpus[i] >= wanted.milli_cpus &&
          block.free_memory[i] >= memory)
        visit(first + i);
  }
}

std::optional<std::size_t> ShapeView::best(const NodeTable& nodes, const PolicyContext& context,
                                           const Request& wanted) const {
  std::optional<std::size_t> found;
  Score bound = kNoScore;
  for_each_below(nodes, wanted, bound, [&](std::size_t slot) {
    bound = scores_[slot];
    found = slot;
  });
  if (!found || exact_for(context, wanted)) return found;

  const Shape shape(wanted, fits_);
  const auto rise = context.fragmentation.least_rise(wanted.milli_cpus - request().milli_cpus);
  OptionMemory memory;
  auto least = kNoScore;
  const auto evaluate_slot = [&](std::size_t slot) {
    const auto score = evaluate(context, nodes.at(slot), shape, &memory).score;
    if (std::pair(score, slot) >= std::pair(least, *found)) return;
    least = score;
    found = slot;
    bound = {score.high - std::min(score.high, rise), score.low + 1};  // an equal one before it is better
  };
  evaluate_slot(*found);
  for_each_below(nodes, wanted, bound, evaluate_slot);
  return found;
}

bool ShapeView::fits(const NodeTable& nodes, std::size_t slot, std::int64_t milli_cpus,
                     std::int64_t memory) const {
  return scores_[slot] < kNoScore && nodes.free_milli_cpus(slot) >= milli_cpus &&
         nodes.free_memory(slot) >= memory;
}

std::vector<std::size_t> ShapeView::fitting(const NodeTable& nodes, const PolicyContext& context,
                                            const Request& wanted) const {
  const Shape shape(wanted, fits_);
  const bool exact = exact_for(context, wanted);
  OptionMemory memory;
  std::vector<std::pair<Score, std::size_t>> found;
  for_each_below(nodes, wanted, kNoScore, [&](std::size_t slot) {
    const auto score = exact ? scores_[slot] : evaluate(context, nodes.at(slot), shape, &memory).score;
    found.emplace_back(score, slot);
  });
  std::ranges::sort(found);
  std::vector<std::size_t> slots;
  for (const auto& [score, slot] : found) slots.push_back(slot);
  return slots;
}

std::size_t ShapeView::count_fitting(const NodeTable& nodes, std::int64_t milli_cpus,
                                     std::int64_t memory) const {
  std::size_t count = 0;
  for (std::size_t slot = 0; slot < nodes.size(); ++slot) count += fits(nodes, slot, milli_cpus, memory);
  return count;
}

std::vector<Tally> ShapeView::tallies(const NodeTable& nodes, std::int64_t milli_cpus) const {
  auto result = tallies_;
  for (auto& tally : result) tally.first = nodes.size();
  Tally cpus{{Dimension::kCpus}};
  Tally memory{{Dimension::kMemory}};
  for (std::size_t slot = 0; slot < nodes.size(); ++slot) {
    const auto code = code_in(scores_[slot]);
    if (result[code].first == nodes.size()) result[code].first = slot;
    if (code != 0) continue;
    auto& host = nodes.free_milli_cpus(slot) < milli_cpus ? cpus : memory;
    if (host.nodes++ == 0) host.first = slot;
  }
  result.push_back(cpus);
  result.push_back(memory);
  result.erase(result.begin(), result.begin() + 2);
  std::erase_if(result, [](const Tally& tally) { return tally.nodes == 0; });
  std::ranges::sort(result, {}, &Tally::obstacle);
  return result;
}

ViewCache::Entry& ViewCache::entry(const Request& request) {
  auto key = request;
  key.group.clear();
  key.memory_bytes = 0;
  if (request.cpu_affinity != Preference::kRequire) key.milli_cpus = 0;
  const auto hash = hash_of(key);
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.hash == hash && entry.view->request() == key; });
  if (found != entries_.end()) {
    found->used = ++uses_;
    return *found;
  }
  if (entries_.size() < kMostViews) entries_.emplace_back();
  auto& oldest = *std::ranges::min_element(entries_, {}, &Entry::used);
  oldest = {hash, ++uses_, std::make_shared<ShapeView>(key)};
  return oldest;
}

const ShapeView& ViewCache::view(const Request& request, const NodeTable& nodes,
                                 const PolicyContext& context) {
  auto& found = entry(request);
  if (!found.view->up_to_date(nodes)) {
    if (found.view.use_count() > 1) found.view = std::make_shared<ShapeView>(*found.view);
    found.view->update(nodes, context);
  }
  return *found.view;
}

std::shared_ptr<KindFits> ViewCache::fits(const Request& request) {
  const auto& found = entry(request);
  if (found.view.use_count() == 1) return found.view->fits();
  return std::make_shared<KindFits>(*found.view->fits());  // it may grow, and this one is shared
}

}  // namespace drover::placement
