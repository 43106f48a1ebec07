#include "container/seccomp.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover::container {
namespace {

using nlohmann::json;

// From linux/sched.h, which clashes with the libc's sched.h.
constexpr std::uint64_t kCloneNewUser = 0x10000000;

std::vector<std::string> denied_calls() {
  return {// kernel keys are not divided by container
          "add_key", "keyctl", "request_key",
          // the kernel itself
          "bpf", "create_module", "delete_module", "finit_module", "get_kernel_syms", "init_module",
          "kexec_file_load", "kexec_load", "query_module", "lookup_dcookie", "perf_event_open", "userfaultfd",
          // its interface for many operations at once goes round this list
          "io_uring_enter", "io_uring_register", "io_uring_setup",
          // hardware
          "ioperm", "iopl", "pciconfig_iobase", "pciconfig_read", "pciconfig_write",
          // namespaces and mounts
          "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_tree",
          "pivot_root", "setns", "umount", "umount2", "unshare",
          // files by handle go past a container's root
          "name_to_handle_at", "open_by_handle_at",
          // the machine
          "acct", "clock_settime", "clock_settime64", "nfsservctl", "quotactl", "quotactl_fd", "reboot",
          "settimeofday", "stime", "swapoff", "swapon", "syslog", "vhangup",
          // long obsolete
          "_sysctl", "sysfs", "uselib", "ustat", "vm86", "vm86old"};
}

json architectures(std::string_view machine) {
  // With the 32-bit forms of the machine: a binary of that kind would be killed otherwise.
  if (machine == "x86_64") return {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
  if (machine == "aarch64") return {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};
  if (machine == "ppc64le") return {"SCMP_ARCH_PPC64LE"};
  if (machine == "s390x") return {"SCMP_ARCH_S390X", "SCMP_ARCH_S390"};
  if (machine == "riscv64") return {"SCMP_ARCH_RISCV64"};
  return json::array();
}

}  // namespace

json seccomp_profile(std::string_view machine) {
  const int flags_argument = machine == "s390x" ? 1 : 0;
  const json new_user_namespace = {
      {"names", {"clone"}},
      {"action", "SCMP_ACT_ERRNO"},
      {"errnoRet", EPERM},
      {"args",
       {{{"index", flags_argument},
         {"value", kCloneNewUser},
         {"valueTwo", kCloneNewUser},
         {"op", "SCMP_CMP_MASKED_EQ"}}}},
  };
  // Its flags lie in memory, where no filter sees them; told that it does not exist, every libc uses clone.
  const json clone3 = {{"names", {"clone3"}}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", ENOSYS}};
  const json denied = {{"names", denied_calls()}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", EPERM}};
  json profile = {{"defaultAction", "SCMP_ACT_ALLOW"},
                  {"syscalls", json::array({denied, new_user_namespace, clone3})}};
  if (auto known = architectures(machine); !known.empty()) profile["architectures"] = std::move(known);
  return profile;
}

}  // namespace drover::container
