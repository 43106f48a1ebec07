# What makes a mistake with memory harder to use. tests/test_binaries.py reads all of it from what was built.
include(CheckCXXCompilerFlag)

# Only where it is optimised: the sanitizers of other builds see more.
set(hardened "$<CONFIG:Release>")
add_compile_options("$<${hardened}:-fstack-protector-strong;-fstack-clash-protection;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
check_cxx_compiler_flag(-fcf-protection DROVER_HAS_CF_PROTECTION)  # of x86 alone
if(DROVER_HAS_CF_PROTECTION)
  add_compile_options("$<${hardened}:-fcf-protection>")
endif()
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
