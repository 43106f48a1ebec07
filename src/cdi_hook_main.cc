// `drover-cdi-hook`: `drover cdi-hook` alone, statically linked, for nodes on which Drover itself lives in a
// container. OCI runtimes run hooks on the node, which may have any C library, or none.

#include <unistd.h>

#include "driver/hook/hook.h"

int main(int argc, char** argv) {
  // As a specification calls either program: NAME cdi-hook HOOK …
  const auto words = argc < 2 ? 0 : static_cast<std::size_t>(argc - 2);
  ::_exit(drover::driver::run_cdi_hook({argv + argc - words, words}));
}
