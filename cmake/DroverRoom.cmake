# drover_room(NAME [DEPENDS rooms...] [LIBRARIES targets...] [TEST_LIBRARIES targets...])
#
# One room of the house: src/NAME/**/*.cc becomes the static library drover_NAME, its *_test.cc files and those
# in folders named testing/ become the test program NAME_test, and every header is compiled alone by the target
# all_verify_interface_header_sets.
add_library(drover_warnings INTERFACE)
target_compile_options(drover_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers $<$<BOOL:${DROVER_WERROR}>:-Werror>)

function(drover_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LIBRARIES;TEST_LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$|/testing/")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/testing/")
  list(TRANSFORM ROOM_DEPENDS PREPEND drover_)

  set(library drover_${name})
  add_library(${library} STATIC ${sources})
  target_sources(${library} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${headers})
  target_include_directories(${library} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${library} PUBLIC ${ROOM_DEPENDS} ${ROOM_LIBRARIES} PRIVATE drover_warnings)
  set_target_properties(${library} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  if(DROVER_FUZZ)  # counts which code an input reaches, which guides the fuzzer
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endif()

  if(BUILD_TESTING AND tests)
    drover_add_test(${name}_test SOURCES ${tests} LIBS ${library} ${ROOM_TEST_LIBRARIES})
  endif()
endfunction()

# drover_add_test(NAME SOURCES files... LIBS targets...): one GoogleTest program, run as one ctest test.
function(drover_add_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${TEST_LIBS} drover_warnings ${RAPIDCHECK_LIBRARY} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()
