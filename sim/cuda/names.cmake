# drover_cuda_names(OUT FILES...): writes the source file OUT, which defines every function that the lists name, weakly,
# and the table behind sim/cuda/names.h. A line of a list is a name, and its versions with the suffixes of the functions
# that stand for it: "cuMemAlloc 2000 3020_v2".
function(drover_cuda_names out)
  set(functions "")
  set(table "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} lines REGEX "^cu")
    foreach(line IN LISTS lines)
      string(REPLACE " " ";" variants "${line}")
      list(POP_FRONT variants name)
      foreach(variant IN LISTS variants)
        string(REGEX MATCH "^([0-9]+)(.*)$" matched "${variant}")
        set(version ${CMAKE_MATCH_1})
        set(function ${name}${CMAKE_MATCH_2})
        set(per_thread false)
        if(variant MATCHES "_pt[ds][sz]$")
          set(per_thread true)
        endif()
        string(APPEND functions "DROVER_UNSUPPORTED(${function})\n")
        string(APPEND table "    {\"${name}\", ${version}, ${per_thread}, reinterpret_cast<void*>(&${function})},\n")
      endforeach()
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [==[
#include "sim/cuda/names.h"

#include <algorithm>
#include <utility>

#define DROVER_UNSUPPORTED(name) __attribute__((weak, visibility("default"))) int name() { return 801; }

extern "C" {
@functions@}

namespace drover::sim::cuda {
namespace {

std::span<const NamedFunction> table() {
  static NamedFunction functions[] = {
@table@  };
  const auto by_name_and_version = [](const NamedFunction& function) {
    return std::pair(function.name, function.version);
  };
  [[maybe_unused]] static const auto sorted = std::ranges::sort(functions, {}, by_name_and_version);
  return functions;
}

}  // namespace

std::span<const NamedFunction> functions_named(std::string_view name) {
  const auto range = std::ranges::equal_range(table(), name, {}, &NamedFunction::name);
  return {range.begin(), range.end()};
}

}  // namespace drover::sim::cuda
]==])
endfunction()
