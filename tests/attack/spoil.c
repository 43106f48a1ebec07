// What a task that means harm does to the live file of simulated GPUs (sim/live.h).
//
//   spoil FILE WAY...      one answer line a way; then it goes on until it is ended

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 64, SLOTS = 256 };
static const off_t kMuch = 96 << 20, kFar = 1LL << 40;

static const char* answer(int failed) {
  return failed < 0 ? strerrorname_np(errno) : "ok";
}

// Owns every slot, each by a lock of its own where that can be, and says of all of them what nobody can
// believe.
static int lie(int file, const char* header) {
  struct stat info;
  if (fstat(file, &info) < 0) return -1;
  for (int slot = 0; slot < SLOTS; slot += 2) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    if (fcntl(file, F_SETLK, &lock) < 0) return -1;
  }
  char* const noise = malloc((size_t)info.st_size);
  const int random = open("/dev/urandom", O_RDONLY);
  for (off_t at = 0; at < info.st_size;) {
    const ssize_t got = read(random, noise + at, (size_t)(info.st_size - at));
    if (got <= 0) return -1;
    at += got;
  }
  if (header != NULL) memcpy(noise, header, HEADER);
  return pwrite(file, noise, (size_t)info.st_size, 0) == info.st_size ? 0 : -1;
}

static int grow(int file) {
  return ftruncate(file, kFar) < 0 || posix_fallocate(file, kMuch, kMuch) != 0 ? -1 : 0;
}

int main(int count, char** words) {
  const char* const path = words[1];
  const int file = open(path, O_RDWR);
  char header[HEADER];
  if (file < 0 || pread(file, header, HEADER, 0) != HEADER) {
    printf("%s: %s\n", path, strerror(errno));
    return 1;
  }
  for (int at = 2; at < count; ++at) {
    const char* const way = words[at];
    int result = -1;
    if (strcmp(way, "garbage") == 0) result = lie(file, NULL);
    if (strcmp(way, "lies") == 0) result = lie(file, header);
    if (strcmp(way, "empty") == 0) result = ftruncate(file, 0);
    if (strcmp(way, "short") == 0) result = ftruncate(file, HEADER + 1000);
    if (strcmp(way, "grow") == 0) result = grow(file);
    if (strcmp(way, "remove") == 0) result = unlink(path);
    if (strcmp(way, "rename") == 0) result = rename(path, "/tmp/live");
    if (strcmp(way, "chmod") == 0) result = fchmod(file, 0);
    printf("%s %s\n", way, answer(result));
  }
  fflush(stdout);
  for (;;) pause();
}
