# Every library that Drover builds with: all are Debian packages (scripts/install-dependencies).
include(GNUInstallDirs)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 REQUIRED COMPONENTS url)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(LibArchive REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf 3.21 REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
# Its headers alone: the library is loaded by the process that fetches files, and by no other.
find_package(CURL 7.85 REQUIRED)
# libyaml, and not yaml-cpp: its parser hands out events, so that aliases and depth are ours to limit, and it can go
# into a shared library and into the program, which Debian's libyaml-cpp.a cannot.
find_path(LIBYAML_INCLUDE_DIR yaml.h REQUIRED)
find_library(LIBYAML_STATIC_LIBRARY libyaml.a REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
find_library(DROVER_SECCOMP NAMES libseccomp.a seccomp REQUIRED)

# The program starts once for every task, as its shim. As shared libraries these bring in two dozen more (libarchive
# alone: libxml2 and ICU), and binding them takes longer than all that Drover itself does to start a task.
set(drover_static_names libarchive.a libcrypto.a libssl.a libhwloc.a libsqlite3.a)
foreach(name ${drover_static_names})
  find_library(DROVER_STATIC_${name} ${name})
endforeach()
if(DROVER_STATIC_libarchive.a)
  # Of libarchive only tar and zip and their compressions are used, so of its own dependencies only these are needed.
  find_library(DROVER_ZLIB NAMES libz.a z REQUIRED)
  find_library(DROVER_ZSTD NAMES libzstd.a zstd REQUIRED)
  find_library(DROVER_BZ2 NAMES libbz2.a bz2 REQUIRED)
  find_library(DROVER_LZMA NAMES liblzma.a lzma REQUIRED)
  find_library(DROVER_NETTLE NAMES libnettle.a nettle REQUIRED)
  set_target_properties(LibArchive::LibArchive PROPERTIES IMPORTED_LOCATION ${DROVER_STATIC_libarchive.a}
    INTERFACE_LINK_LIBRARIES "${DROVER_ZLIB};${DROVER_ZSTD};${DROVER_BZ2};${DROVER_LZMA};${DROVER_NETTLE}")
endif()
if(DROVER_STATIC_libcrypto.a)
  set_target_properties(OpenSSL::Crypto PROPERTIES IMPORTED_LOCATION ${DROVER_STATIC_libcrypto.a}
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()
if(DROVER_STATIC_libssl.a)
  set_target_properties(OpenSSL::SSL PROPERTIES IMPORTED_LOCATION ${DROVER_STATIC_libssl.a}
    INTERFACE_LINK_LIBRARIES OpenSSL::Crypto)
endif()
if(DROVER_STATIC_libsqlite3.a)
  set_target_properties(SQLite::SQLite3 PROPERTIES IMPORTED_LOCATION ${DROVER_STATIC_libsqlite3.a}
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
if(DROVER_STATIC_libhwloc.a)
  set_target_properties(PkgConfig::hwloc PROPERTIES INTERFACE_LINK_LIBRARIES "${DROVER_STATIC_libhwloc.a};udev;m")
endif()

# Asio and Beast are headers alone if one lets them: here they are compiled once, and not again wherever they are included.
foreach(part asio/impl/src asio/ssl/impl/src beast/src)
  string(MAKE_C_IDENTIFIER ${part} name)
  file(CONFIGURE OUTPUT asio/${name}.cc CONTENT "#include <boost/${part}.hpp>\n")
  list(APPEND drover_asio_sources ${CMAKE_CURRENT_BINARY_DIR}/asio/${name}.cc)
endforeach()
add_library(drover_asio STATIC ${drover_asio_sources})
target_compile_definitions(drover_asio PUBLIC BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(drover_asio PUBLIC Boost::headers OpenSSL::SSL Threads::Threads)
set_target_properties(drover_asio PROPERTIES UNITY_BUILD OFF)

find_library(DROVER_RE2 NAMES libre2.a re2 REQUIRED)
# gRPC speaks with the kubelet, over unix sockets: without TLS. Its own package names shared libraries, and not all that
# the static ones need. Asked once: pkg_check_modules() asks sixteen times, and each answer takes a second.
execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs-only-l grpc++_unsecure
  OUTPUT_VARIABLE drover_grpc_flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ ]+" drover_grpc_names "${drover_grpc_flags}")
list(TRANSFORM drover_grpc_names REPLACE "^-l" "")
list(APPEND drover_grpc_names upb address_sorting cares z)
list(REMOVE_ITEM drover_grpc_names atomic rt)
list(REMOVE_DUPLICATES drover_grpc_names)
foreach(name ${drover_grpc_names})
  find_library(DROVER_GRPC_${name} NAMES lib${name}.a ${name} REQUIRED)
  list(APPEND drover_grpc_libraries ${DROVER_GRPC_${name}})
endforeach()
list(JOIN drover_grpc_libraries "," drover_grpc_group)
add_library(drover_grpc INTERFACE)
target_link_libraries(drover_grpc INTERFACE "$<LINK_GROUP:RESCAN,${drover_grpc_group},${DROVER_RE2}>" Threads::Threads)

if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  find_package(GTest REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
endif()
