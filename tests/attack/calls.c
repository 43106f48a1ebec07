// System calls by number, for attacks from inside of containers. One static program for x86-64.
//
//   calls DOOR NUMBER [ARGUMENT]... [, DOOR NUMBER [ARGUMENT]...]...
//
// A line for each: "ok", an error's name, or "signal N" for the process that was to make the call. DOOR is
// the interface of the kernel that is used: "native", "int80" (of 32-bit programs) or "x32". "peek" instead
// reads memory of a process.

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostArguments = 6, kX32 = 0x40000000 };

static long through_int80(long number, const long* arguments) {
  long result = number;
  register long rbp __asm__("r12") = arguments[5];
  __asm__ volatile(
      "push %%rbp\n\tpush %%rbx\n\tmov %[first], %%rbx\n\tmov %[last], %%rbp\n\tint $0x80\n\tpop "
      "%%rbx\n\tpop %%rbp"
      : "+a"(result)
      : [first] "r"(arguments[0]), "c"(arguments[1]), "d"(arguments[2]), "S"(arguments[3]),
        "D"(arguments[4]), [last] "r"(rbp)
      : "memory", "r8", "r9", "r10", "r11");
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

static long peek(int process) {
  char byte = 0;
  const struct iovec here = {&byte, 1}, there = {(void*)0x400000, 1};
  return process_vm_readv(process, &here, 1, &there, 1, 0);
}

static long make(const char* door, char** words, int count) {
  if (strcmp(door, "peek") == 0) return peek(atoi(words[0]));
  long arguments[kMostArguments] = {0};
  for (int i = 1; i < count && i <= kMostArguments; ++i) arguments[i - 1] = (long)strtoull(words[i], NULL, 0);
  const long number = strtol(words[0], NULL, 0);
  if (strcmp(door, "int80") == 0) return through_int80(number, arguments);
  return syscall(strcmp(door, "x32") == 0 ? number | kX32 : number, arguments[0], arguments[1], arguments[2],
                 arguments[3], arguments[4], arguments[5]);
}

// In a process of its own: the call may end it.
static void report(const char* door, char** words, int count) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const long result = make(door, words, count);
    printf("%s\n", result == -1 ? strerrorname_np(errno) : "ok");
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
}

int main(int count, char** words) {
  for (int at = 1; at < count;) {
    int end = at;
    while (end < count && strcmp(words[end], ",") != 0) ++end;
    if (end - at < 2) return 2;
    report(words[at], words + at + 1, end - at - 1);
    at = end + 1;
  }
  return 0;
}
