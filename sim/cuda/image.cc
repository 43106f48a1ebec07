#include "sim/cuda/image.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include "sim/cuda/arena.h"

namespace drover::sim::cuda {
namespace {

constexpr std::uint64_t kLargestFile = 64 << 20;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '.' || c == '%';
}

/// Words, and other characters one by one; without comments.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  /// Empty at the end.
  std::string_view next() {
    skip();
    if (rest_.empty()) return {};
    std::size_t length = 0;
    while (length < rest_.size() && is_word(rest_[length])) ++length;
    if (length == 0 && rest_[0] == '"') length = std::min(rest_.find('"', 1), rest_.size() - 2) + 1;
    const auto token = rest_.substr(0, std::max<std::size_t>(length, 1));
    rest_.remove_prefix(token.size());
    return token;
  }

 private:
  void skip() {
    while (!rest_.empty()) {
      const auto blank = std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size());
      rest_.remove_prefix(blank);
      if (rest_.starts_with("//"))
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      else if (rest_.starts_with("/*"))
        rest_.remove_prefix(std::min(rest_.find("*/", 2), rest_.size() - 2) + 2);
      else if (blank == 0)
        return;
    }
  }

  std::string_view rest_;
};

/// Bytes of ".b8", ".f64"; none of another word.
std::optional<std::uint64_t> type_bytes(std::string_view word) {
  if (word.size() < 3 || word[0] != '.' || std::string_view("bsuf").find(word[1]) == std::string_view::npos)
    return std::nullopt;
  const auto digits = word.substr(2, word.find('x') - 2);
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc() || end != digits.data() + digits.size() || bits % 8 != 0 || bits == 0 ||
      bits > 128)
    return std::nullopt;
  return bits / 8;
}

/// The rest of a declaration, up to its semicolon or value: ".align 4 .v2 .b8 name[2][3]". Several stand with
/// commas between.
void read_globals(Tokens& tokens, Image& image) {
  std::uint64_t element = 0;
  Image::Global global;
  const auto finish = [&] {
    if (!global.name.empty() && element != 0) image.globals.push_back(global);
    global = {};
  };
  for (auto token = tokens.next(); !token.empty() && token != ";" && token != "="; token = tokens.next()) {
    if (token == ".align") {
      tokens.next();
    } else if (token == ".v2" || token == ".v4") {
      element = token == ".v2" ? 2 : 4;
    } else if (const auto bytes = type_bytes(token)) {
      element = std::max<std::uint64_t>(element, 1) * *bytes;
    } else if (token == "[") {
      std::uint64_t count = 0;
      const auto number = tokens.next();
      std::from_chars(number.data(), number.data() + number.size(), count);
      if (count > 0 && global.size > kMostBytes / count) count = 1;
      global.size *= count;
    } else if (token == ",") {
      finish();
    } else if (token != "]" && token[0] != '.') {
      global = {std::string(token), element};
    }
  }
  finish();
}

}  // namespace

CUresult read_image(std::string_view text, Image& image) {
  const auto begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const auto binary = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~';
  };
  if (begin == text.size() || binary(text[begin])) return CUDA_ERROR_INVALID_IMAGE;
  Tokens tokens(text);
  bool has_version = false;
  bool external = false;
  for (auto token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token == ".version") {
      has_version = true;
    } else if (token == ".extern") {
      external = true;
    } else if (token == ".entry") {
      image.kernels.emplace_back(tokens.next());
    } else if (token == ".global") {
      Image declared;
      read_globals(tokens, declared);
      if (!external) std::ranges::move(declared.globals, std::back_inserter(image.globals));
    }
    if (token == ";" || token == "}" || token == ".global") external = false;
  }
  return has_version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

CUresult read_image_file(const char* file, std::string& text) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return CUDA_ERROR_FILE_NOT_FOUND;
  for (char part[1 << 16]; text.size() <= kLargestFile;) {
    stream.read(part, sizeof(part));
    if (stream.gcount() == 0) return CUDA_SUCCESS;
    text.append(part, static_cast<std::size_t>(stream.gcount()));
  }
  return CUDA_ERROR_INVALID_IMAGE;
}

}  // namespace drover::sim::cuda
