#pragma once

// The bytes of drover-init, which the program brings along: from drover_init_begin up to drover_init_end.

#ifdef __cplusplus
extern "C" {
#endif

extern const char drover_init_begin[];
extern const char drover_init_end[];

#ifdef __cplusplus
}
#endif
