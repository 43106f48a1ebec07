# drover_room(NAME [BUSY] [LONG_TESTS files...] [DEPENDS rooms...] [LIBRARIES targets...] [TEST_LIBRARIES targets...])
#
# One room of the house: src/NAME/**/*.cc becomes the static library drover_NAME, its *_test.cc files and those
# in folders named testing/ become the test program NAME_test, and every header is compiled alone by the target
# lone_headers. A BUSY room computes for long in its tests: both are optimised also where others are not. Where only
# its LONG_TESTS do, they are a program of their own, NAME_long_test, and the other tests are compiled like any.
add_library(drover_warnings INTERFACE)
target_compile_options(drover_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers $<$<BOOL:${DROVER_WERROR}>:-Werror>)

# Counts which code an input reaches, which guides the fuzzer.
function(drover_watch_coverage target)
  if(DROVER_COVERAGE)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# Half of a compiler's time goes into the headers of libraries: they are parsed once for the rooms, and once for the tests.
# None of our own that changes is among them, so that a change of one rebuilds only what includes it.
set(drover_common_headers <algorithm> <array> <charconv> <chrono> <cstdint> <deque> <filesystem> <functional> <map> <memory>
  <optional> <set> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>
  <nlohmann/json.hpp> <tl/expected.hpp> ${CMAKE_SOURCE_DIR}/src/base/json_templates.h)
file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cc "")
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")  # for ccache
add_library(drover_room_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
target_link_libraries(drover_room_headers PRIVATE drover_warnings)
target_precompile_headers(drover_room_headers PRIVATE ${drover_common_headers})
drover_watch_coverage(drover_room_headers)

# Sources of one folder are compiled together where CMAKE_UNITY_BUILD says so: the headers of libraries, and what of their
# templates is used, cost once. File-local names are therefore unique within a folder.
function(drover_compile_folders_together target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# Each header of a room, with nothing before it but the common headers: without those it would take thrice as long.
add_custom_target(lone_headers)
function(drover_compile_headers_alone library root)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${root} ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(NOT headers)
    return()
  endif()
  foreach(header IN LISTS headers)
    file(CONFIGURE OUTPUT alone/${header}.cc CONTENT "#include \"${header}\"\n")
    list(APPEND lone ${CMAKE_CURRENT_BINARY_DIR}/alone/${header}.cc)
  endforeach()
  add_library(${library}_alone OBJECT EXCLUDE_FROM_ALL ${lone})
  target_link_libraries(${library}_alone PRIVATE ${library} drover_warnings)
  target_precompile_headers(${library}_alone REUSE_FROM drover_room_headers)
  set_target_properties(${library}_alone PROPERTIES UNITY_BUILD OFF)
  drover_watch_coverage(${library}_alone)
  add_dependencies(lone_headers ${library}_alone)
endfunction()

function(drover_room name)
  cmake_parse_arguments(ROOM "BUSY" "" "LONG_TESTS;DEPENDS;LIBRARIES;TEST_LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$|/testing/")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/testing/")
  list(TRANSFORM ROOM_DEPENDS PREPEND drover_)

  set(library drover_${name})
  add_library(${library} STATIC ${sources})
  target_include_directories(${library} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${library} PUBLIC ${ROOM_DEPENDS} ${ROOM_LIBRARIES} PRIVATE drover_warnings)
  if(ROOM_BUSY AND DROVER_BUSY_OPTIONS)  # what is precompiled is so for other options
    target_compile_options(${library} PRIVATE ${DROVER_BUSY_OPTIONS})
  else()
    target_precompile_headers(${library} REUSE_FROM drover_room_headers)
  endif()
  drover_compile_folders_together(${library})
  drover_watch_coverage(${library})
  drover_compile_headers_alone(${library} ${CMAKE_SOURCE_DIR}/src)

  if(BUILD_TESTING AND ROOM_LONG_TESTS)
    drover_add_test(${name}_long_test SOURCES ${ROOM_LONG_TESTS} LIBS ${library} ${ROOM_TEST_LIBRARIES} BUSY TRUE)
    list(TRANSFORM ROOM_LONG_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM tests ${ROOM_LONG_TESTS})
    set(ROOM_BUSY FALSE)
  endif()
  if(BUILD_TESTING AND tests)
    drover_add_test(${name}_test SOURCES ${tests} LIBS ${library} ${ROOM_TEST_LIBRARIES} BUSY ${ROOM_BUSY})
  endif()
endfunction()

# An executable only because its tests are: the code of both is placed alike.
if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  add_executable(drover_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(drover_test_headers PRIVATE drover_warnings GTest::gmock GTest::gtest_main)
  target_compile_options(drover_test_headers PRIVATE ${DROVER_TEST_OPTIONS})
  target_precompile_headers(drover_test_headers PRIVATE ${drover_common_headers} <gmock/gmock.h> <gtest/gtest.h>
    <rapidcheck.h> <rapidcheck/gtest.h>)
endif()

add_custom_target(unit_tests)

# drover_add_test(NAME SOURCES files... LIBS targets... [BUSY bool]): one GoogleTest program, run as one ctest test.
function(drover_add_test name)
  cmake_parse_arguments(TEST "" "BUSY" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${TEST_LIBS} drover_warnings ${RAPIDCHECK_LIBRARY} GTest::gmock GTest::gtest_main)
  if(TEST_BUSY)
    target_compile_options(${name} PRIVATE ${DROVER_BUSY_OPTIONS})
  else()
    target_compile_options(${name} PRIVATE ${DROVER_TEST_OPTIONS})
    target_precompile_headers(${name} REUSE_FROM drover_test_headers)
  endif()
  drover_compile_folders_together(${name})
  add_dependencies(unit_tests ${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()
