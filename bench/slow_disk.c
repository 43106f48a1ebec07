// Makes a disk slow: preloaded, each fdatasync() and fsync() takes so many milliseconds more as SLOW_DISK_MS
// says.

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void pause_first(void) {
  const char* text = getenv("SLOW_DISK_MS");
  long milliseconds = text ? strtol(text, NULL, 10) : 0;
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

int fdatasync(int file) {
  pause_first();
  return (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
  pause_first();
  return (int)syscall(SYS_fsync, file);
}
