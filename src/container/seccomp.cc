#include "container/seccomp.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>

namespace drover::container {
namespace {

using nlohmann::json;
using Names = std::span<const char* const>;

constexpr const char* kAllow = "SCMP_ACT_ALLOW";
constexpr const char* kRefuse = "SCMP_ACT_ERRNO";

// Names of calls as the libseccomp of 64-bit machines knows them. A runtime passes over those that its
// libseccomp or the machine does not have.

constexpr const char* kFileCalls[] = {
    "access", "cachestat", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat",
    "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock",
    "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents",
    "getdents64", "getxattr", "getxattrat", "ioctl", "lchown", "lgetxattr", "link", "linkat", "listxattr",
    "listxattrat", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod",
    "mknodat", "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64",
    "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "removexattr",
    "removexattrat", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr", "setxattrat",
    "splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "tee",
    "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "write", "writev",
    // asynchronous, the old way
    "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit",
    // watching
    "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch"};

constexpr const char* kMemoryCalls[] = {
    "brk",        "get_mempolicy", "madvise",       "map_shadow_stack", "mbind",
    "membarrier", "memfd_create",  "memfd_secret",  "mincore",          "mlock",
    "mlock2",     "mlockall",      "mmap",          "mprotect",         "mremap",
    "mseal",      "msync",         "munlock",       "munlockall",       "munmap",
    "pkey_alloc", "pkey_free",     "pkey_mprotect", "remap_file_pages", "set_mempolicy"};

constexpr const char* kProcessCalls[] = {
    "execve", "execveat", "exit", "exit_group", "fork", "getcpu", "getpgid", "getpgrp", "getpid", "getppid",
    "getpriority", "getrandom", "getrlimit", "getrusage", "getsid", "gettid", "ioprio_get", "ioprio_set",
    "prctl", "prlimit64", "restart_syscall", "rseq", "set_tid_address", "setpgid", "setpriority", "setrlimit",
    "setsid", "sysinfo", "times", "uname", "vfork", "wait4", "waitid",
    // who it is, and what it may
    "capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid", "getuid",
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "seccomp", "setfsgid",
    "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid", "setuid",
    // others of the same user, which the kernel checks
    "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "process_mrelease", "process_vm_readv",
    "process_vm_writev", "ptrace",
    // scheduling
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
    "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
    "sched_setparam", "sched_setscheduler", "sched_yield",
    // signals
    "kill", "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack", "tgkill", "tkill"};

constexpr const char* kWaitingCalls[] = {"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait",
                                         "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "poll", "ppoll",
                                         "pselect6", "select", "signalfd", "signalfd4",
                                         // locks of threads
                                         "futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake",
                                         "get_robust_list", "set_robust_list"};

constexpr const char* kTimeCalls[] = {"adjtimex",       "alarm",
                                      "clock_adjtime",  "clock_getres",
                                      "clock_gettime",  "clock_nanosleep",
                                      "getitimer",      "gettimeofday",
                                      "nanosleep",      "setitimer",
                                      "time",           "timer_create",
                                      "timer_delete",   "timer_getoverrun",
                                      "timer_gettime",  "timer_settime",
                                      "timerfd_create", "timerfd_gettime",
                                      "timerfd_settime"};

constexpr const char* kMessageCalls[] = {
    "accept",       "accept4",   "bind",          "connect",   "getpeername", "getsockname",
    "getsockopt",   "listen",    "mq_getsetattr", "mq_notify", "mq_open",     "mq_timedreceive",
    "mq_timedsend", "mq_unlink", "msgctl",        "msgget",    "msgrcv",      "msgsnd",
    "pipe",         "pipe2",     "recvfrom",      "recvmmsg",  "recvmsg",     "semctl",
    "semget",       "semop",     "semtimedop",    "sendmmsg",  "sendmsg",     "sendto",
    "setsockopt",   "shmat",     "shmctl",        "shmdt",     "shmget",      "shutdown"};

/// Not for containers, whoever asks.
constexpr const char* kRefusedCalls[] = {
    // kernel keys are not divided by container
    "add_key", "keyctl", "request_key",
    // the kernel itself
    "bpf", "create_module", "delete_module", "finit_module", "get_kernel_syms", "init_module",
    "kexec_file_load", "kexec_load", "lookup_dcookie", "perf_event_open", "query_module", "userfaultfd",
    // its interface for many operations at once goes round this list
    "io_uring_enter", "io_uring_register", "io_uring_setup",
    // hardware
    "ioperm", "iopl", "modify_ldt", "pciconfig_iobase", "pciconfig_read", "pciconfig_write",
    // namespaces and mounts
    "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_tree",
    "pivot_root", "setdomainname", "sethostname", "setns", "umount2", "unshare",
    // files by handle go past a container's root, and whole file systems are watched
    "fanotify_init", "fanotify_mark", "name_to_handle_at", "open_by_handle_at",
    // memory of others, or lent to them
    "kcmp", "migrate_pages", "move_pages", "process_madvise", "set_mempolicy_home_node", "vmsplice",
    // the machine
    "acct", "clock_settime", "nfsservctl", "quotactl", "quotactl_fd", "reboot", "settimeofday", "swapoff",
    "swapon", "syslog", "vhangup",
    // long obsolete
    "_sysctl", "sysfs", "uselib", "ustat"};

constexpr const char* kX86Calls[] = {"arch_prctl", "uprobe", "uretprobe"};
constexpr const char* kRiscvCalls[] = {"riscv_flush_icache", "riscv_hwprobe"};
constexpr const char* kPowerCalls[] = {"_llseek",     "_newselect",       "fstatfs64",  "ipc",    "statfs64",
                                       "swapcontext", "sync_file_range2", "ugetrlimit", "waitpid"};
constexpr const char* kZCalls[] = {
    "fstatfs64", "ipc",     "s390_pci_mmio_read", "s390_pci_mmio_write", "s390_runtime_instr",
    "sigreturn", "statfs64"};

/// What sets the kinds of machines apart.
struct Machine {
  std::string_view name;
  int clone_flags = 0;     ///< which argument of clone(2)
  bool socketcall = true;  ///< sockets also come from a call whose arguments no filter sees
  Names calls;
};

constexpr Machine kMachines[] = {{"x86_64", 0, false, kX86Calls},
                                 {"aarch64", 0, false, {}},
                                 {"riscv64", 0, false, kRiscvCalls},
                                 {"ppc64le", 0, true, kPowerCalls},
                                 {"s390x", 1, true, kZCalls}};

Machine machine_called(std::string_view name) {
  const auto* const found = std::ranges::find(kMachines, name, &Machine::name);
  return found == std::end(kMachines) ? Machine() : *found;
}

/// A condition on argument `index` of a call.
json argument(int index, const char* comparison, std::uint64_t value, std::uint64_t second = 0) {
  return {{"index", index}, {"op", comparison}, {"value", value}, {"valueTwo", second}};
}
json argument_is(int index, std::uint64_t value) {
  return argument(index, "SCMP_CMP_EQ", value);
}
json argument_has(int index, std::uint64_t flag) {
  return argument(index, "SCMP_CMP_MASKED_EQ", flag, flag);
}

json list(Names names) {
  return json::array_t(names.begin(), names.end());
}

json allow(json names, json::array_t conditions = {}) {
  json rule = {{"names", std::move(names)}, {"action", kAllow}};
  if (!conditions.empty()) rule["args"] = std::move(conditions);
  return rule;
}

json refuse(json names, int error, json::array_t conditions = {}) {
  auto rule = allow(std::move(names), std::move(conditions));
  rule["action"] = kRefuse;
  rule["errnoRet"] = error;
  return rule;
}

/// New threads and processes, but no new namespaces. The flags of clone3 lie in memory, where no filter sees
/// them; told that it does not exist, every libc uses clone.
void add_clone(json& rules, int flags) {
  // From linux/sched.h, which clashes with the libc's sched.h: mount, cgroup, UTS, IPC, user, PID, network.
  constexpr std::uint64_t kNamespaces[] = {0x00020000, 0x02000000, 0x04000000, 0x08000000,
                                           0x10000000, 0x20000000, 0x40000000};
  std::uint64_t all = 0;
  for (const auto flag : kNamespaces) {
    rules.push_back(refuse({"clone"}, EPERM, {argument_has(flags, flag)}));
    all |= flag;
  }
  rules.push_back(allow({"clone"}, {argument(flags, "SCMP_CMP_MASKED_EQ", all, 0)}));
  rules.push_back(refuse({"clone3"}, ENOSYS));
}

/// Sockets of this machine's processes, of IP, and to ask the kernel about networks, devices and RDMA. Other
/// families are not divided by container (AF_VSOCK), hear the whole wire (AF_PACKET), or have brought more
/// holes than uses (AF_ALG).
void add_sockets(json& rules, const Machine& machine) {
  if (machine.socketcall) {
    rules.push_back(allow({"socket", "socketcall", "socketpair"}));
    return;
  }
  constexpr int kDomain = 0, kProtocol = 2;
  constexpr int kRoute = 0, kSockDiag = 4, kAudit = 9, kUevent = 15, kGeneric = 16, kRdma = 20;
  for (int family = AF_UNSPEC; family < AF_NETLINK; ++family) {
    const bool open = family == AF_UNIX || family == AF_INET || family == AF_INET6;
    rules.push_back(open ? allow({"socket"}, {argument_is(kDomain, family)})
                         : refuse({"socket"}, EAFNOSUPPORT, {argument_is(kDomain, family)}));
  }
  for (const int protocol : {kRoute, kSockDiag, kUevent, kGeneric, kRdma})
    rules.push_back(allow({"socket"}, {argument_is(kDomain, AF_NETLINK), argument_is(kProtocol, protocol)}));
  // Login programs do without when they are told so, and give up at any other error.
  rules.push_back(refuse({"socket"}, EPROTONOSUPPORT,
                         {argument_is(kDomain, AF_NETLINK), argument_is(kProtocol, kAudit)}));
  rules.push_back(refuse({"socket"}, EAFNOSUPPORT, {argument(kDomain, "SCMP_CMP_GT", AF_NETLINK)}));
  rules.push_back(allow({"socketpair"}, {argument_is(kDomain, AF_UNIX)}));
}

/// Linux as it is, its 32-bit name (PER_LINUX32), its old version (UNAME26), both; and the question.
void add_personality(json& rules) {
  for (const std::uint64_t value : {0x0U, 0x8U, 0x20000U, 0x20008U, 0xffffffffU})
    rules.push_back(allow({"personality"}, {argument_is(0, value)}));
}

}  // namespace

json seccomp_profile(std::string_view machine_name, const std::vector<std::string>& capabilities) {
  const auto machine = machine_called(machine_name);
  auto rules = json::array();
  for (const Names names : {Names(kFileCalls), Names(kMemoryCalls), Names(kProcessCalls),
                            Names(kWaitingCalls), Names(kTimeCalls), Names(kMessageCalls), machine.calls})
    if (!names.empty()) rules.push_back(allow(list(names)));
  rules.push_back(refuse(list(kRefusedCalls), EPERM));
  const bool may_chroot = std::ranges::find(capabilities, "CAP_SYS_CHROOT") != capabilities.end();
  rules.push_back(may_chroot ? allow({"chroot"}) : refuse({"chroot"}, EPERM));
  add_clone(rules, machine.clone_flags);
  add_sockets(rules, machine);
  add_personality(rules);
  // Without "architectures" it is for the machine's own interface alone; runtimes do not know all of their
  // names.
  return {{"defaultAction", kRefuse}, {"defaultErrnoRet", ENOSYS}, {"syscalls", std::move(rules)}};
}

}  // namespace drover::container
