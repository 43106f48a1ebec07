#include "cel/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "cel/lexer.h"
#include "cel/macros.h"
#include "cel/text.h"

namespace drover::cel {
namespace {

using Kind = Expression::Kind;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Node> all() {
    DROVER_TRY(auto node, expression());
    if (peek().kind != Token::Kind::kEnd) return unexpected();
    return node;
  }

 private:
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool at(std::string_view symbol) const {
    return peek().kind == Token::Kind::kSymbol && peek().text == symbol;
  }
  bool take(std::string_view symbol) {
    if (!at(symbol)) return false;
    ++at_;
    return true;
  }
  Failure unexpected() const {
    return peek().kind == Token::Kind::kEnd
               ? no_cel("it ends too early", peek().place)
               : no_cel(fmt::format("'{}' is not expected here", peek().text), peek().place);
  }
  Status expect(std::string_view symbol) {
    if (!take(symbol)) return unexpected();
    return {};
  }

  Result<Node> expression() {
    if (++depth_ > kDeepest) return too_deep(peek().place);
    DROVER_TRY(auto node, one_of("||", Kind::kOr));
    if (at("?")) {
      const auto place = tokens_[at_++].place;
      DROVER_TRY(auto yes, one_of("||", Kind::kOr));
      DROVER_CHECK_OK(expect(":"));
      DROVER_TRY(auto no, expression());
      DROVER_TRY(node, made(Kind::kChoice, place, "@choice", {node, yes, no}));
    }
    --depth_;
    return node;
  }

  Result<Node> one_of(std::string_view symbol, Kind kind) {
    std::vector<Node> parts;
    const auto place = peek().place;
    do {
      DROVER_TRY(auto part, kind == Kind::kOr ? one_of("&&", Kind::kAnd) : relation());
      parts.push_back(std::move(part));
    } while (take(symbol));
    if (parts.size() == 1) return parts[0];
    return made(kind, place, std::string(symbol), std::move(parts));
  }

  Result<Node> relation() {
    constexpr std::array<std::string_view, 6> kOperators{"<", "<=", ">=", ">", "==", "!="};
    DROVER_TRY(auto left, sum());
    while (true) {
      const auto& token = peek();
      const bool in = token.kind == Token::Kind::kName && token.text == "in";
      const bool known =
          token.kind == Token::Kind::kSymbol && std::ranges::find(kOperators, token.text) != kOperators.end();
      if (!in && !known) return left;
      ++at_;
      DROVER_TRY(auto right, sum());
      DROVER_TRY(left,
                 made(Kind::kCall, token.place, in ? "@in" : fmt::format("_{}_", token.text), {left, right}));
    }
  }

  Result<Node> sum() {
    DROVER_TRY(auto left, product());
    while (at("+") || at("-")) {
      DROVER_TRY(left, binary(left, &Parser::product));
    }
    return left;
  }
  Result<Node> product() {
    DROVER_TRY(auto left, unary());
    while (at("*") || at("/") || at("%")) {
      DROVER_TRY(left, binary(left, &Parser::unary));
    }
    return left;
  }
  Result<Node> binary(Node left, Result<Node> (Parser::*operand)()) {
    const auto token = tokens_[at_++];
    DROVER_TRY(auto right, (this->*operand)());
    return made(Kind::kCall, token.place, fmt::format("_{}_", token.text),
                {std::move(left), std::move(right)});
  }

  /// Two of a kind mean nothing, and a minus before a number belongs to it.
  Result<Node> unary() {
    const auto place = peek().place;
    const auto sign = at("!") ? "!" : at("-") ? "-" : "";
    std::size_t count = 0;
    while (*sign != '\0' && at(sign)) {
      if (*sign == '-' && peek(1).kind == Token::Kind::kNumber && count % 2 == 0) break;
      ++at_;
      ++count;
    }
    DROVER_TRY(auto node, member());
    if (count % 2 == 0) return node;
    return made(Kind::kCall, place, *sign == '!' ? "!_" : "-_", {std::move(node)});
  }

  Result<Node> member() {
    DROVER_TRY(auto node, primary());
    while (at(".") || at("[")) {
      if (at("[")) {
        DROVER_TRY(node, index(std::move(node)));
      } else {
        DROVER_TRY(node, select(std::move(node)));
      }
    }
    return node;
  }

  Result<Node> index(Node operand) {
    const auto place = tokens_[at_++].place;
    const bool optional = take("?");
    DROVER_TRY(auto key, expression());
    DROVER_CHECK_OK(expect("]"));
    return made(Kind::kCall, place, optional ? "_[?_]" : "_[_]", {std::move(operand), std::move(key)});
  }

  Result<Node> select(Node operand) {
    const auto place = tokens_[at_++].place;
    const bool optional = take("?");
    const auto name = peek();
    if (name.kind != Token::Kind::kName || is_literal_word(name.text)) return unexpected();
    ++at_;
    if (at("{") && (operand->kind == Kind::kName || operand->kind == Kind::kSelect)) return message(name);
    if (optional || !at("("))
      return made(optional ? Kind::kOptional : Kind::kSelect, place, std::string(name.text),
                  {std::move(operand)});
    DROVER_TRY(auto arguments, call_arguments());
    arguments.insert(arguments.begin(), std::move(operand));
    DROVER_TRY(auto call, made(Kind::kCall, place, std::string(name.text), std::move(arguments)));
    call->member = true;
    return expanded(std::move(call));
  }

  static bool is_literal_word(std::string_view name) {
    return name == "in" || name == "true" || name == "false" || name == "null";
  }
  static Failure message(const Token& name) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("the message '{}' of a selector is not known here", name.text));
  }

  Result<std::vector<Node>> call_arguments() {
    DROVER_CHECK_OK(expect("("));
    std::vector<Node> arguments;
    if (take(")")) return arguments;
    do {
      DROVER_TRY(auto argument, expression());
      arguments.push_back(std::move(argument));
    } while (take(","));
    DROVER_CHECK_OK(expect(")"));
    return arguments;
  }

  Result<Node> primary() {
    const auto token = peek();
    if (token.kind == Token::Kind::kLiteral) {
      ++at_;
      return literal(token.place, token.value);
    }
    if (take("(")) {
      DROVER_TRY(auto node, expression());
      DROVER_CHECK_OK(expect(")"));
      return node;
    }
    if (take("[")) return list(token.place);
    if (take("{")) return map(token.place);
    const bool negative = take("-");
    if (peek().kind == Token::Kind::kNumber) {
      DROVER_TRY(auto value, number_of(peek().text, negative, token.place));
      ++at_;
      return literal(token.place, std::move(value));
    }
    if (negative) return unexpected();
    take(".");  // every name is looked up from the top anyway
    return name();
  }

  Result<Node> name() {
    const auto token = peek();
    if (token.kind != Token::Kind::kName || token.text == "in") return unexpected();
    ++at_;
    if (token.text == "true" || token.text == "false") return literal(token.place, token.text == "true");
    if (token.text == "null") return literal(token.place, Value());
    static const std::set<std::string_view> kReserved{
        "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
        "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};
    if (kReserved.contains(token.text))
      return no_cel(fmt::format("'{}' is a reserved word", token.text), token.place);
    if (at("{")) return message(token);
    if (!at("(")) return made(Kind::kName, token.place, std::string(token.text), {});
    DROVER_TRY(auto arguments, call_arguments());
    DROVER_TRY(auto call, made(Kind::kCall, token.place, std::string(token.text), std::move(arguments)));
    return expanded(std::move(call));
  }

  Result<Node> list(std::size_t place) {
    std::vector<Node> elements;
    std::vector<bool> optional;
    while (!at("]")) {
      optional.push_back(take("?"));
      DROVER_TRY(auto element, expression());
      elements.push_back(std::move(element));
      if (!take(",")) break;
    }
    DROVER_CHECK_OK(expect("]"));
    DROVER_TRY(auto node, made(Kind::kList, place, "", std::move(elements)));
    node->optional = std::move(optional);
    return node;
  }

  Result<Node> map(std::size_t place) {
    std::vector<Node> elements;
    std::vector<bool> optional;
    while (!at("}")) {
      optional.push_back(take("?"));
      DROVER_TRY(auto key, expression());
      DROVER_CHECK_OK(expect(":"));
      DROVER_TRY(auto value, expression());
      elements.push_back(std::move(key));
      elements.push_back(std::move(value));
      if (!take(",")) break;
    }
    DROVER_CHECK_OK(expect("}"));
    DROVER_TRY(auto node, made(Kind::kMap, place, "", std::move(elements)));
    node->optional = std::move(optional);
    return node;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Node> parse(std::string_view text) {
  constexpr std::size_t kLongest = 10 * 1024;
  if (text.size() > kLongest) return no_cel("it is longer than 10 KiB", kLongest);
  if (!is_utf8(text)) return no_cel("it is no UTF-8", 0);
  DROVER_TRY(auto tokens, tokens_of(text));
  return Parser(std::move(tokens)).all();
}

}  // namespace drover::cel
