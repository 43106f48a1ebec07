// What black-box tests run inside of containers: one static program, so that an image needs nothing else.
//
//   probe VERB ARGUMENTS [, VERB ARGUMENTS]...      one answer line a verb; ',' stands alone between them

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char* answer(int failed) {
  return failed < 0 ? strerrorname_np(errno) : "ok";
}

static int starts_with_nvidia(const struct dirent* entry) {
  return strncmp(entry->d_name, "nvidia", 6) == 0;
}

// The NVIDIA device nodes that are there, on one line.
static void devices(void) {
  struct dirent** entries;
  const int count = scandir("/dev", &entries, starts_with_nvidia, versionsort);
  for (int i = 0; i < count; ++i) printf("%s%s", i > 0 ? " " : "", entries[i]->d_name);
  printf("\n");
}

static const char* open_device(const char* path) {
  return answer(open(path, O_RDWR | O_CLOEXEC));
}

// Makes a character device node and opens it.
static void make_and_open(const char* path, const char* major_text, const char* minor_text) {
  unlink(path);
  const dev_t device = makedev(strtoul(major_text, NULL, 10), strtoul(minor_text, NULL, 10));
  if (mknod(path, S_IFCHR | 0666, device) < 0)
    printf("mknod %s\n", strerrorname_np(errno));
  else
    printf("%s\n", open_device(path));
}

static void write_file(const char* path, const char* text, int flags) {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (file < 0) {
    printf("%s\n", strerrorname_np(errno));
    return;
  }
  printf("%s\n", answer(dprintf(file, "%s\n", text) < 0 ? -1 : 0));
  close(file);
}

// So many bytes of the disk.
static void fill(const char* path, const char* bytes) {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  printf("%s\n", file >= 0 && posix_fallocate(file, 0, atoll(bytes)) == 0 ? "ok" : "failed");
  close(file);
}

// The first line of a file.
static void read_line(const char* path) {
  char line[4096] = "";
  FILE* file = fopen(path, "re");
  if (file == NULL || fgets(line, sizeof line, file) == NULL)
    printf("%s\n", strerrorname_np(errno));
  else
    printf("%s%s", line, strchr(line, '\n') != NULL ? "" : "\n");
  if (file != NULL) fclose(file);
}

static int is_no_dot(const struct dirent* entry) {
  return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

// The names in a folder, on one line.
static void list(const char* path) {
  struct dirent** entries;
  const int count = scandir(path, &entries, is_no_dot, alphasort);
  if (count < 0) printf("%s", strerrorname_np(errno));
  for (int i = 0; i < count; ++i) printf("%s%s", i > 0 ? " " : "", entries[i]->d_name);
  printf("\n");
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// Takes hold of the programs of all processes that come and go for some seconds, and tries to write to each
// that is not this one.
static void seize(const char* seconds) {
  enum { kMost = 64 };
  int held[kMost], count = 0;
  char paths[kMost][256];
  struct stat own;
  if (stat("/proc/self/exe", &own) != 0) return;
  for (const double end = now() + strtod(seconds, NULL); now() < end;) {
    struct dirent** entries;
    const int found = scandir("/proc", &entries, NULL, NULL);
    for (int i = 0; i < found; ++i) {
      char link[300];
      struct stat info;
      snprintf(link, sizeof link, "/proc/%s/exe", entries[i]->d_name);
      const int program = count < kMost && atoi(entries[i]->d_name) > 0 ? open(link, O_PATH | O_CLOEXEC) : -1;
      const ssize_t length = program >= 0 ? readlink(link, paths[count], sizeof paths[count] - 1) : -1;
      int known = program < 0 || fstat(program, &info) != 0 ||
                  (info.st_dev == own.st_dev && info.st_ino == own.st_ino);
      for (int j = 0; j < count && !known; ++j) {
        struct stat other;
        known = fstat(held[j], &other) == 0 && other.st_dev == info.st_dev && other.st_ino == info.st_ino;
      }
      if (!known) {
        paths[count][length > 0 ? length : 0] = '\0';
        held[count++] = program;
      } else if (program >= 0) {
        close(program);
      }
      free(entries[i]);
    }
    if (found >= 0) free(entries);
    for (int j = 0; j < count; ++j) {
      char path[64];
      snprintf(path, sizeof path, "/proc/self/fd/%d", held[j]);
      const int written = open(path, O_WRONLY | O_CLOEXEC);
      if (written >= 0 || errno != ETXTBSY) {
        printf("seized %s %s\n", paths[j], answer(written));
        close(held[j]);
        held[j] = held[--count];
        memcpy(paths[j], paths[count], sizeof paths[j]);
        break;
      }
    }
  }
  for (int j = 0; j < count; ++j) printf("seized %s ETXTBSY\n", paths[j]);
}

// Types into the terminal that it has, as if its user had.
static void inject(const char* text) {
  int failed = 0;
  for (const char* at = text; *at != '\0' && failed == 0; ++at) failed = ioctl(STDIN_FILENO, TIOCSTI, at);
  printf("inject %s\n", answer(failed));
}

static void show_file(const char* path) {
  char buffer[4096];
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) printf("%s\n", strerrorname_np(errno));
  for (ssize_t size = 0; file >= 0 && (size = read(file, buffer, sizeof buffer)) > 0;)
    fwrite(buffer, 1, (size_t)size, stdout);
}

static void sleep_for(const char* seconds) {
  const double wanted = strtod(seconds, NULL);
  struct timespec left = {(time_t)wanted, (long)((wanted - (double)(time_t)wanted) * 1e9)};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) {
  }
}

static void allocate(const char* mebibytes) {
  const size_t size = strtoul(mebibytes, NULL, 10) << 20;
  volatile char* memory = malloc(size);
  for (size_t i = 0; memory != NULL && i < size; i += 4096) memory[i] = 1;
  printf("ok\n");
}

// A real fault: signals that the first process of a container sends to itself are ignored by the kernel.
static void crash(void) {
  *(volatile int*)16 = 0;
}

static void show_environment(const char* name) {
  const char* value = getenv(name);
  printf("%s\n", value != NULL ? value : "(unset)");
}

// Answers every HTTP request with one text.
static void serve(const char* port, const char* text) {
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  const int one = 1;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr*)&any, sizeof any) != 0 || listen(listener, 16) != 0) exit(3);
  for (;;) {
    char request[4096];
    const int client = accept(listener, NULL, NULL);
    if (client < 0) continue;
    if (read(client, request, sizeof request) > 0)
      dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", strlen(text),
              text);
    close(client);
  }
}

// A message with room for one descriptor, between tasks that share a network.
struct Parcel {
  char word;
  struct iovec content;
  _Alignas(struct cmsghdr) char extra[CMSG_SPACE(sizeof(int))];
  struct msghdr message;
};

static void pack(struct Parcel* parcel) {
  memset(parcel, 0, sizeof *parcel);
  parcel->content = (struct iovec){&parcel->word, 1};
  parcel->message = (struct msghdr){.msg_iov = &parcel->content,
                                    .msg_iovlen = 1,
                                    .msg_control = parcel->extra,
                                    .msg_controllen = sizeof parcel->extra};
}

static socklen_t abstract_name(const char* name, struct sockaddr_un* address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  strncpy(address->sun_path + 1, name, sizeof address->sun_path - 2);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

// Opens a device and hands it to whoever receives at this name, once somebody does.
static void lend(const char* device, const char* name) {
  struct sockaddr_un address;
  const socklen_t size = abstract_name(name, &address);
  const int sender = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const int opened = open(device, O_RDWR | O_CLOEXEC);
  if (opened < 0) {
    printf("%s\n", answer(opened));
    return;
  }
  while (connect(sender, (struct sockaddr*)&address, size) < 0) sleep_for("0.02");
  struct Parcel parcel;
  pack(&parcel);
  struct cmsghdr* const header = CMSG_FIRSTHDR(&parcel.message);
  *header = (struct cmsghdr){CMSG_LEN(sizeof opened), SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(header), &opened, sizeof opened);
  const int sent = (int)sendmsg(sender, &parcel.message, 0);
  if (sent == 1) (void)!read(sender, &parcel.word, 1);  // until it has arrived
  printf("%s\n", answer(sent));
}

// Receives what is lent at this name, and keeps it.
static void borrow(const char* name) {
  struct sockaddr_un address;
  const socklen_t size = abstract_name(name, &address);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, 1) != 0) exit(3);
  const int lender = accept(listener, NULL, NULL);
  struct Parcel parcel;
  pack(&parcel);
  const int received = (int)recvmsg(lender, &parcel.message, 0);
  (void)!write(lender, "x", 1);
  printf("%s\n", answer(received));
}

// Calls itself otherwise.
static void rename_to(const char* name) {
  printf("%s\n", answer(prctl(PR_SET_NAME, name)));
}

// Starts this program anew, which sleeps, with nothing by which it could be known: no session, no
// environment, no open files.
static void leave(const char* seconds) {
  char* const words[] = {"probe", "sleep", (char*)seconds, NULL};
  char* const none[] = {NULL};
  if (fork() != 0) return;
  setsid();
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  execve("/proc/self/exe", words, none);
  _exit(1);
}

struct Verb {
  const char* name;
  int arguments;
};
static const struct Verb kVerbs[] = {
    {"devices", 0},  {"open", 1},   {"mknod", 3}, {"write", 2},  {"append", 2}, {"sleep", 1},
    {"allocate", 1}, {"ignore", 0}, {"exit", 1},  {"id", 0},     {"env", 1},    {"say", 1},
    {"complain", 1}, {"pwd", 0},    {"crash", 0}, {"exists", 1}, {"serve", 2},  {"lock", 1},
    {"read", 1},     {"list", 1},   {"seize", 1}, {"inject", 1}, {"lend", 2},   {"borrow", 1},
    {"rename", 1},   {"show", 1},   {"fill", 2},  {"leave", 1},  {"signal", 1},
};

static void perform(const char* verb, char** words) {
  char path[4096];
  if (strcmp(verb, "devices") == 0) devices();
  if (strcmp(verb, "open") == 0) printf("%s\n", open_device(words[0]));
  if (strcmp(verb, "mknod") == 0) make_and_open(words[0], words[1], words[2]);
  if (strcmp(verb, "write") == 0) write_file(words[0], words[1], O_TRUNC);
  if (strcmp(verb, "append") == 0) write_file(words[0], words[1], O_APPEND);
  if (strcmp(verb, "fill") == 0) fill(words[0], words[1]);
  if (strcmp(verb, "sleep") == 0) sleep_for(words[0]);
  if (strcmp(verb, "allocate") == 0) allocate(words[0]);
  if (strcmp(verb, "ignore") == 0) signal(SIGTERM, SIG_IGN);
  if (strcmp(verb, "exit") == 0) exit(atoi(words[0]));
  if (strcmp(verb, "id") == 0) printf("%u %u\n", geteuid(), getegid());
  if (strcmp(verb, "env") == 0) show_environment(words[0]);
  if (strcmp(verb, "say") == 0) printf("%s\n", words[0]);
  if (strcmp(verb, "complain") == 0) fprintf(stderr, "%s\n", words[0]);
  if (strcmp(verb, "pwd") == 0) printf("%s\n", getcwd(path, sizeof path));
  if (strcmp(verb, "crash") == 0) crash();
  if (strcmp(verb, "serve") == 0) serve(words[0], words[1]);
  if (strcmp(verb, "exists") == 0) printf("%s\n", answer(access(words[0], F_OK)));
  if (strcmp(verb, "read") == 0) read_line(words[0]);
  if (strcmp(verb, "list") == 0) list(words[0]);
  if (strcmp(verb, "seize") == 0) seize(words[0]);
  if (strcmp(verb, "inject") == 0) inject(words[0]);
  if (strcmp(verb, "show") == 0) show_file(words[0]);
  if (strcmp(verb, "lock") == 0) printf("%s\n", answer(flock(atoi(words[0]), LOCK_EX | LOCK_NB)));
  if (strcmp(verb, "lend") == 0) lend(words[0], words[1]);
  if (strcmp(verb, "borrow") == 0) borrow(words[0]);
  if (strcmp(verb, "leave") == 0) leave(words[0]);
  if (strcmp(verb, "rename") == 0) rename_to(words[0]);
  if (strcmp(verb, "signal") == 0) kill(getpid(), atoi(words[0]));
  fflush(stdout);
}

int main(int count, char** words) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int at = 1; at < count;) {
    size_t verb = 0;
    const size_t verbs = sizeof kVerbs / sizeof *kVerbs;
    while (verb < verbs && strcmp(kVerbs[verb].name, words[at]) != 0) ++verb;
    if (verb == verbs || at + kVerbs[verb].arguments >= count) {
      fprintf(stderr, "probe: '%s' is no verb, or its arguments are missing\n", words[at]);
      return 2;
    }
    perform(words[at], words + at + 1);
    at += 1 + kVerbs[verb].arguments;
    if (at < count && strcmp(words[at], ",") == 0) ++at;
  }
  return 0;
}
