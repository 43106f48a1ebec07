// `drover-init`: process 1 of every container. It does with the task's own rights what an OCI runtime would
// do as root (entering the working folder), and what a program that was not made for it forgets: it hands
// signals on, reaps who lost his parent, and ends as the command did.
//
//   drover-init [--filter FILE] [--report FD] [--input|--terminal] [--hold] [--direct] WORKDIR COMMAND
//               [ARGUMENT...]
//
// The command reads from /dev/null, with --input from what there is, and with --terminal that is the terminal
// of its session: keys that interrupt are for the command alone. --filter names the program of a filter of
// system calls (an array of sock_filter) that holds for it and for all that it starts. What goes wrong is one
// sentence on standard error and exit status 127 (not found) or 126. With --report it is a line of numbers
// instead, for src/container/init.h; --direct becomes the command, which is what a further command in a
// container wants; with --hold it stops itself before, until somebody lets it go on (SIGCONT).
//
// Static and without allocations: it starts in every image, and once for every task.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/report.h"

extern char** environ;

static int report_fd = -1;

static void report(const char* format, ...) {
  char line[64];
  va_list values;
  va_start(values, format);
  const int size = vsnprintf(line, sizeof line, format, values);
  va_end(values);
  if (report_fd >= 0 && write(report_fd, line, (size_t)size) < 0) return;  // nobody listens any more
}

static int status_of(int error) {
  return error == ENOENT || error == ENOTDIR ? 127 : 126;
}

static _Noreturn void refuse_filter(int error) {
  if (report_fd >= 0)
    report(DROVER_INIT_FILTER " %d\n", error);
  else
    dprintf(STDERR_FILENO, "drover: The system calls of the command cannot be limited: %s\n",
            strerror(error));
  _exit(126);
}

static _Noreturn void refuse_folder(const char* folder) {
  const int error = errno;
  if (report_fd >= 0)
    report(DROVER_INIT_FOLDER " %d\n", error);
  else
    dprintf(STDERR_FILENO, "drover: Cannot enter the working folder '%s': %s\n", folder, strerror(error));
  _exit(status_of(error));
}

static _Noreturn void refuse_command(const char* command, int error) {
  if (report_fd >= 0)
    report(DROVER_INIT_COMMAND " %d\n", error);
  else if (status_of(error) == 127)
    dprintf(STDERR_FILENO, "drover: There is no command '%s' in the container\n", command);
  else
    dprintf(STDERR_FILENO, "drover: The command '%s' cannot be executed in the container: %s\n", command,
            strerror(error));
  _exit(status_of(error));
}

// Becomes the command. Returns why it could not, as a value of errno. As runtimes do it and not as execvp(3):
// what is no program is not handed to a shell.
static int execute(char* const* command) {
  const char* name = command[0];
  if (strchr(name, '/') != NULL) {
    execve(name, command, environ);
    return errno;
  }
  const char* path = getenv("PATH");
  if (path == NULL) path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  int reason = ENOENT;
  while (1) {
    const size_t length = strcspn(path, ":");
    char candidate[PATH_MAX];
    const char* folder = length > 0 ? path : ".";
    const int size =
        snprintf(candidate, sizeof candidate, "%.*s/%s", length > 0 ? (int)length : 1, folder, name);
    if (size > 0 && (size_t)size < sizeof candidate) {
      execve(candidate, command, environ);
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
      // A folder of that name is not what was looked for; nor is anything below a folder that is closed.
      if (errno == EACCES && access(candidate, F_OK) == 0) reason = EACCES;
    }
    if (path[length] == '\0') return reason;
    path += length + 1;
  }
}

// Whoever set no_new_privs may do it, and nobody takes it back.
static void limit_system_calls(const char* file) {
  static struct sock_filter program[BPF_MAXINSNS];
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  const ssize_t size = fd < 0 ? -1 : read(fd, program, sizeof program);
  if (size < 0) refuse_filter(errno);
  close(fd);
  const struct sock_fprog whole = {(unsigned short)((size_t)size / sizeof *program), program};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) != 0) refuse_filter(errno);
}

// The runtime's standard input is an empty pipe: a node of the host's is nothing that a container may own.
static void take_null_input(void) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, STDIN_FILENO);
  if (null != STDIN_FILENO) close(null);
}

static pid_t start(char* const* command, const sigset_t* mask, int terminal) {
  static volatile int error;  // in memory that both have
  error = 0;
  const pid_t child = vfork();
  if (child < 0) refuse_command(command[0], errno);
  if (child == 0) {
    if (terminal && setpgid(0, 0) == 0) tcsetpgrp(STDIN_FILENO, getpid());  // SIGTTOU is blocked here
    sigprocmask(SIG_SETMASK, mask, NULL);
    error = execute(command);
    _exit(status_of(error));
  }
  if (error != 0) refuse_command(command[0], error);
  return child;
}

// As the machine's own shutdown does it: a script's children hear of it too, and a halted one is woken to
// hear it.
// Shells at a terminal only listen to its end.
static void ask_all_to_end(int terminal) {
  kill(-1, SIGTERM);
  if (terminal) kill(-1, SIGHUP);
  kill(-1, SIGCONT);
}

// Until the command has ended; returns how, as wait(2) tells it.
static int tend(pid_t command, const sigset_t* all, int terminal) {
  while (1) {
    siginfo_t info;
    const int signal = sigwaitinfo(all, &info);
    if (signal < 0) continue;
    if (signal == SIGTERM) {
      ask_all_to_end(terminal);
    } else if (signal != SIGCHLD) {
      if (signal != SIGPIPE) kill(command, signal);  // that one is our own: of a report that nobody reads
      continue;
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
      if (ended == command) return status;
  }
}

int main(int count, char** words) {
  int next = 1;
  int direct = 0, hold = 0, input = 0, terminal = 0;
  const char* filter = NULL;
  for (; next < count && strncmp(words[next], "--", 2) == 0; ++next) {
    if (strcmp(words[next], "--direct") == 0) {
      direct = 1;
    } else if (strcmp(words[next], "--hold") == 0) {
      hold = 1;
    } else if (strcmp(words[next], "--input") == 0) {
      input = 1;
    } else if (strcmp(words[next], "--terminal") == 0) {
      input = terminal = 1;
    } else if (strcmp(words[next], "--filter") == 0 && next + 1 < count) {
      filter = words[++next];
    } else if (strcmp(words[next], "--report") == 0 && next + 1 < count) {
      report_fd = atoi(words[++next]);
      fcntl(report_fd, F_SETFD, FD_CLOEXEC);
    } else {
      break;
    }
  }
  if (count - next < 2) {
    dprintf(STDERR_FILENO,
            "usage: drover-init [--filter FILE] [--report FD] [--input|--terminal] [--hold] [--direct] "
            "WORKDIR COMMAND [ARGUMENT...]\n");
    return 2;
  }
  if (filter != NULL) limit_system_calls(filter);
  const char* folder = words[next];
  char* const* command = words + next + 1;
  if (chdir(folder) != 0) refuse_folder(folder);
  if (direct && hold) raise(SIGSTOP);
  if (direct) refuse_command(command[0], execute(command));
  if (!input) take_null_input();

  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t child = start(command, &before, terminal);
  report(DROVER_INIT_RUNNING "\n");
  const int status = tend(child, &all, terminal);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  report(DROVER_INIT_SIGNAL " %d\n", WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
