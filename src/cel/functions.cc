#include "cel/functions.h"

#include <array>
#include <set>

namespace drover::cel {
namespace {

using Table = std::map<std::string, std::vector<Overload>, std::less<>>;

/// Reads a signature. They are ours: a wrong one is a mistake that the first test finds.
class Signature {
 public:
  explicit Signature(std::string_view text) : text_(text) {}

  void into(Table& table, const Declaration& declaration) {
    Overload overload;
    overload.run = declaration.run;
    overload.way = declaration.way;
    overload.member = text_.substr(0, text_.find('(')).find(':') != text_.npos;
    if (overload.member) {
      overload.parameters.push_back(type());
      text_.remove_prefix(1);
    }
    const std::string name(text_.substr(0, text_.find('(')));
    text_.remove_prefix(name.size() + 1);
    while (!text_.starts_with(')')) {
      overload.parameters.push_back(type());
      if (text_.starts_with(',')) text_.remove_prefix(1);
    }
    text_.remove_prefix(std::string_view(")->").size());
    overload.result = type();
    table[name].push_back(std::move(overload));
  }

 private:
  TypePointer type() {
    const auto name = text_.substr(0, std::min(text_.find_first_of("<>,):"), text_.size()));
    text_.remove_prefix(name.size());
    if (name.size() == 1)
      return std::make_shared<const Type>(
          Type{Type::Kind::kVariable, {}, static_cast<std::size_t>(name[0] - 'A'), {}});
    static const std::map<std::string_view, Type::Kind> kNames{
        {"dyn", Type::Kind::kDynamic}, {"bool", Type::Kind::kBool},        {"int", Type::Kind::kInt},
        {"uint", Type::Kind::kUint},   {"double", Type::Kind::kDouble},    {"string", Type::Kind::kString},
        {"bytes", Type::Kind::kBytes}, {"list", Type::Kind::kList},        {"map", Type::Kind::kMap},
        {"type", Type::Kind::kType},   {"optional", Type::Kind::kOptional}};
    const auto found = kNames.find(name);
    if (found == kNames.end()) return object("kubernetes." + std::string(name));
    std::vector<TypePointer> of;
    while (text_.starts_with('<') || (!of.empty() && text_.starts_with(','))) {
      text_.remove_prefix(1);
      of.push_back(type());
    }
    if (!of.empty()) text_.remove_prefix(1);
    return compound(found->second, std::move(of));
  }

  std::string_view text_;
};

std::string with(std::string_view signature, std::string_view type) {
  std::string result;
  for (const char c : signature) c == '$' ? result += type : result += c;
  return result;
}

Table made_table() {
  constexpr std::array<std::string_view, 8> kOrdered{"int",      "uint",      "double", "bool",
                                                     "Duration", "Timestamp", "string", "bytes"};
  Table table;
  for (const auto declarations :
       {standard_functions(), list_functions(), string_functions(), kubernetes_functions()})
    for (const auto& declaration : declarations)
      for (auto rest = declaration.signatures; !rest.empty();) {
        const auto signature = rest.substr(0, rest.find(';'));
        rest.remove_prefix(std::min(signature.size() + 1, rest.size()));
        const bool several = signature.find('$') != signature.npos;
        for (const auto type : std::span(kOrdered).first(several ? kOrdered.size() : 1))
          Signature(with(signature, type)).into(table, declaration);
      }
  return table;
}

}  // namespace

const std::vector<Overload>* find_function(std::string_view name) {
  static const Table kTable = made_table();
  const auto found = kTable.find(name);
  return found == kTable.end() ? nullptr : &found->second;
}

}  // namespace drover::cel
