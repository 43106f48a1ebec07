#include "image/registry/challenge.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace drover::image {
namespace {

constexpr std::size_t kMostChallenges = 16;
constexpr std::size_t kMostParameters = 16;

bool is_token_character(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kOthers.find(c) != std::string_view::npos;
}

/// Takes the header apart from its front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  void skip(std::string_view any) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(any), rest_.size()));
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string token() {
    std::string word;
    while (!rest_.empty() && is_token_character(rest_.front())) {
      word += lower(rest_.front());
      rest_.remove_prefix(1);
    }
    return word;
  }
  /// A token as it stands, or what is in quotes.
  std::string value() {
    std::string text;
    if (!take('"')) {
      const auto* const end = std::ranges::find_if_not(rest_, is_token_character);
      text.assign(rest_.begin(), end);
      rest_.remove_prefix(text.size());
      return text;
    }
    while (!rest_.empty() && !take('"')) {
      if (take('\\') && rest_.empty()) break;
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    return text;
  }
  void drop_one() { rest_.remove_prefix(std::min<std::size_t>(1, rest_.size())); }

 private:
  std::string_view rest_;
};

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
  std::vector<Challenge> challenges;
  Scanner in(header);
  while (true) {
    in.skip(" \t,");
    if (in.at_end()) return challenges;
    auto word = in.token();
    if (word.empty()) {
      in.drop_one();
      continue;
    }
    in.skip(" \t");
    if (!in.take('=')) {  // a word alone begins a challenge
      if (challenges.size() == kMostChallenges) return challenges;
      challenges.push_back({std::move(word), {}});
      continue;
    }
    in.skip(" \t");
    auto value = in.value();
    if (!challenges.empty() && challenges.back().parameters.size() < kMostParameters)
      challenges.back().parameters.emplace(std::move(word), std::move(value));
  }
}

}  // namespace drover::image
