/* What the driver's own NVML says. One caller at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes that this process has of a GPU, its contexts included; false while NVML has never listed it, which is
 * so before its first context, and where it numbers processes otherwise than this one does. */
bool figure_of_process(int entry, uint64_t* bytes);

/* Bytes that all processes of the machine have of it; false without NVML. */
bool figure_of_gpu(int entry, uint64_t* bytes);
