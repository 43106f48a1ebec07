#include "init/program.h"

__asm__(
    ".pushsection .rodata, \"a\"\n"
    ".balign 16\n"
    ".hidden drover_init_begin\n"
    ".globl drover_init_begin\n"
    "drover_init_begin:\n"
    ".incbin \"" DROVER_INIT_FILE
    "\"\n"
    ".hidden drover_init_end\n"
    ".globl drover_init_end\n"
    "drover_init_end:\n"
    ".byte 0\n"
    ".popsection\n");
