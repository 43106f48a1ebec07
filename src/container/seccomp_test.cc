#include "container/seccomp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "container/capabilities.h"
#include "container/seccomp_filter.h"

namespace drover::container {
namespace {

using nlohmann::json;
using Values = std::vector<std::uint64_t>;

const std::vector<const char*> kAllMachines = {"x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "unknown"};
constexpr int kAllowed = 0;

bool holds(const json& condition, const Values& arguments) {
  const auto actual = arguments.at(condition["index"].get<std::size_t>());
  const auto value = condition["value"].get<std::uint64_t>();
  const auto comparison = condition["op"].get<std::string>();
  if (comparison == "SCMP_CMP_EQ") return actual == value;
  if (comparison == "SCMP_CMP_GT") return actual > value;
  EXPECT_EQ(comparison, "SCMP_CMP_MASKED_EQ");
  return (actual & value) == condition["valueTwo"].get<std::uint64_t>();
}

bool applies(const json& rule, const std::string& call, const Values& arguments) {
  const auto names = rule["names"].get<std::vector<std::string>>();
  if (std::ranges::find(names, call) == names.end()) return false;
  for (const auto& condition : rule.value("args", json::array()))
    if (!holds(condition, arguments)) return false;
  return true;
}

/// What the kernel would answer: kAllowed or an errno. Rules that contradict each other are a failure.
int answer(const json& profile, const std::string& call, Values arguments = {}) {
  arguments.resize(6);
  std::set<int> answers;
  for (const auto& rule : profile["syscalls"])
    if (applies(rule, call, arguments))
      answers.insert(rule["action"] == "SCMP_ACT_ALLOW" ? kAllowed : rule["errnoRet"].get<int>());
  EXPECT_LE(answers.size(), 1U) << call;
  return answers.empty() ? profile["defaultErrnoRet"].get<int>() : *answers.begin();
}

json profile_of(const char* machine, uid_t uid = 1000) {
  return seccomp_profile(machine, capabilities_of(User{uid, uid, {}, "", ""}));
}

TEST(Seccomp, DeniesWhatItDoesNotKnow) {
  for (const auto* machine : kAllMachines) {
    const auto profile = profile_of(machine);
    EXPECT_EQ(profile["defaultAction"], "SCMP_ACT_ERRNO");
    for (const char* call : {"a_call_of_tomorrow", "open_tree_attr", "listns", "clone3"})
      EXPECT_EQ(answer(profile, call), ENOSYS) << machine << " " << call;
  }
}

TEST(Seccomp, AllowsWhatEveryProgramDoes) {
  for (const auto* machine : kAllMachines)
    for (const char* call :
         {"read", "openat", "mmap", "execve", "futex", "rt_sigaction", "exit_group", "waitid", "sendmsg",
          "clock_gettime", "prctl", "memfd_create", "ioctl", "sched_setaffinity"})
      EXPECT_EQ(answer(profile_of(machine), call), kAllowed) << machine << " " << call;
}

TEST(Seccomp, DeniesWhatIsNotForContainersAlsoToRoot) {
  for (const auto* machine : kAllMachines)
    for (const char* call : {"mount", "unshare", "setns", "bpf", "keyctl", "io_uring_setup", "userfaultfd",
                             "perf_event_open", "open_by_handle_at", "fanotify_init", "kcmp", "move_pages",
                             "sethostname", "syslog", "init_module", "vmsplice"})
      EXPECT_EQ(answer(profile_of(machine, 0), call), EPERM) << machine << " " << call;
}

TEST(Seccomp, NamesACallInOneRuleUnlessItsArgumentsDecide) {
  for (const auto* machine : kAllMachines) {
    std::map<std::string, int> rules;
    const auto profile = profile_of(machine);
    for (const auto& rule : profile["syscalls"])
      if (!rule.contains("args"))
        for (const auto& name : rule["names"]) ++rules[name.get<std::string>()];
    for (const auto& [name, count] : rules) EXPECT_EQ(count, 1) << machine << " " << name;
  }
}

TEST(Seccomp, OnlyTheMachinesOwnInterfaceIsOpen) {
  for (const auto* machine : kAllMachines) EXPECT_FALSE(profile_of(machine).contains("architectures"));
  EXPECT_EQ(answer(profile_of("x86_64"), "arch_prctl"), kAllowed);
  EXPECT_EQ(answer(profile_of("aarch64"), "arch_prctl"), ENOSYS);
}

TEST(Seccomp, WhoMayNotChangeTheRootIsToldSo) {
  EXPECT_EQ(answer(profile_of("x86_64", 0), "chroot"), kAllowed);
  EXPECT_EQ(answer(profile_of("x86_64", 1000), "chroot"), EPERM);
}

TEST(Seccomp, CloneMakesNoNamespaces) {
  const auto flags_at = [](const char* machine, std::uint64_t flags) {
    return std::string_view(machine) == "s390x" ? Values{0, flags} : Values{flags, 0};
  };
  for (const auto* machine : kAllMachines) {
    const auto profile = profile_of(machine, 0);
    const auto clone = [&](std::uint64_t flags) {
      return answer(profile, "clone", flags_at(machine, flags));
    };
    EXPECT_EQ(clone(SIGCHLD), kAllowed) << machine;
    EXPECT_EQ(clone(CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_SETTLS), kAllowed) << machine;
    for (const auto flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                            CLONE_NEWPID, CLONE_NEWNET})
      EXPECT_EQ(clone(static_cast<unsigned>(flag) | SIGCHLD), EPERM) << machine << " " << flag;
    EXPECT_EQ(clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_VM), EPERM) << machine;
  }
}

TEST(Seccomp, SocketsAreOfFewFamilies) {
  const auto profile = profile_of("x86_64", 0);
  const auto socket = [&](std::uint64_t family, std::uint64_t protocol = 0) {
    return answer(profile, "socket", {family, SOCK_DGRAM, protocol});
  };
  for (std::uint64_t family = 0; family < 64; ++family) {
    const bool open = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    EXPECT_EQ(socket(family), open ? kAllowed : EAFNOSUPPORT) << family;
  }
  EXPECT_EQ(answer(profile, "socketpair", {AF_UNIX}), kAllowed);
  EXPECT_EQ(answer(profile, "socketpair", {AF_TIPC}), ENOSYS);
}

TEST(Seccomp, BitsThatTheKernelDoesNotReadOpenNothing) {
  constexpr std::uint64_t kHigh = 1ULL << 32;
  const auto profile = profile_of("x86_64", 0);
  for (const std::uint64_t family : {AF_VSOCK, AF_ALG, AF_PACKET})
    EXPECT_NE(answer(profile, "socket", {kHigh | family}), kAllowed) << family;
  EXPECT_NE(answer(profile, "socket", {AF_NETLINK, SOCK_RAW, kHigh | 9}), kAllowed);
  EXPECT_NE(answer(profile, "clone", {kHigh | CLONE_NEWUSER}), kAllowed);
  EXPECT_NE(answer(profile, "personality", {kHigh | 0x0040000}), kAllowed);
}

TEST(Seccomp, NetlinkIsForNetworksDevicesAndRdma) {
  const auto profile = profile_of("x86_64");
  const auto netlink = [&](std::uint64_t protocol) {
    return answer(profile, "socket", {AF_NETLINK, SOCK_RAW, protocol});
  };
  for (const std::uint64_t protocol : {0, 4, 15, 16, 20}) EXPECT_EQ(netlink(protocol), kAllowed) << protocol;
  EXPECT_EQ(netlink(9), EPROTONOSUPPORT);
  for (const std::uint64_t protocol : {6, 12, 21}) EXPECT_EQ(netlink(protocol), ENOSYS) << protocol;
}

TEST(Seccomp, PersonalityIsLinux) {
  const auto profile = profile_of("x86_64");
  for (const std::uint64_t value : {0x0U, 0x8U, 0x20000U, 0x20008U, 0xffffffffU})
    EXPECT_EQ(answer(profile, "personality", {value}), kAllowed) << value;
  for (const std::uint64_t value : {0x0040000U, 0x0400000U, 0x1U})
    EXPECT_EQ(answer(profile, "personality", {value}), ENOSYS) << value;
}

/// What the kernel makes of a program of a filter.
std::uint32_t run(const std::string& bytes, const seccomp_data& call) {
  std::vector<sock_filter> program(bytes.size() / sizeof(sock_filter));
  std::memcpy(program.data(), bytes.data(), bytes.size());
  std::uint32_t a = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const auto [code, yes, no, k] = program[at];
    const auto jump = [&](bool holds) { at += holds ? yes : no; };
    switch (code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&call) + k, sizeof a);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= k;
        break;
      case BPF_JMP | BPF_JA:
        at += k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        jump(a == k);
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        jump(a > k);
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        jump(a >= k);
        break;
      case BPF_RET | BPF_K:
        return k;
      default:
        ADD_FAILURE() << "an instruction that is not known: " << code;
        return 0;
    }
  }
  ADD_FAILURE() << "it has no end";
  return 0;
}

std::uint32_t kernels(int answer) {
  return answer == kAllowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(answer);
}

TEST(SeccompFilter, AnswersAsTheListSays) {
  constexpr auto kHigh = std::uint64_t{1} << 40;
  const std::vector<Values> kArguments = {{0, 0, 0},
                                          {1, 1, 0},
                                          {AF_NETLINK, 0, 9},
                                          {AF_NETLINK, 0, 15},
                                          {AF_NETLINK, 0, 12},
                                          {AF_INET6, 0, 0},
                                          {AF_PACKET, 0, 0},
                                          {AF_VSOCK, 0, 0},
                                          {0x20008, 0, 0},
                                          {0xffffffff, 0, 0},
                                          {0x40000, 0, 0},
                                          {CLONE_NEWUSER, 0},
                                          {CLONE_NEWNS, 0},
                                          {kHigh | CLONE_NEWUSER, 0},
                                          {CLONE_VM | SIGCHLD, 0}};
  const std::map<std::string, std::uint32_t> machines = {{"x86_64", AUDIT_ARCH_X86_64},
                                                         {"aarch64", AUDIT_ARCH_AARCH64}};
  for (const auto& [machine, architecture] : machines)
    for (const uid_t uid : {0, 1000}) {
      const auto profile = profile_of(machine.c_str(), uid);
      const auto program = compile_filter(profile, machine);
      ASSERT_TRUE(program) << to_string(program.error());
      int compared = 0;
      for (const auto& rule : profile["syscalls"])
        for (const auto& name : rule["names"]) {
          const auto call = name.get<std::string>();
          const int number = seccomp_syscall_resolve_name_arch(architecture, call.c_str());
          if (number < 0) continue;
          const bool decided = !rule.contains("args");
          for (auto arguments : decided ? std::vector<Values>{{}} : kArguments) {
            arguments.resize(6);
            seccomp_data data{number, architecture, 0, {}};
            std::ranges::copy(arguments, std::begin(data.args));
            EXPECT_EQ(run(*program, data), kernels(answer(profile, call, arguments)))
                << machine << " " << uid << " " << call << " " << ::testing::PrintToString(arguments);
            ++compared;
          }
        }
      EXPECT_GT(compared, 300);
      EXPECT_EQ(run(*program, {9999, architecture, 0, {}}), kernels(ENOSYS)) << "a call of tomorrow";
    }
}

TEST(SeccompFilter, EndsWhoUsesAnotherInterface) {
  const auto program = compile_filter(profile_of("x86_64"), "x86_64").value();
  const int getpid = seccomp_syscall_resolve_name_arch(AUDIT_ARCH_X86_64, "getpid");
  EXPECT_EQ(run(program, {getpid, AUDIT_ARCH_X86_64, 0, {}}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(run(program, {getpid, AUDIT_ARCH_I386, 0, {}}), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(run(program, {getpid | 0x40000000, AUDIT_ARCH_X86_64, 0, {}}), SECCOMP_RET_KILL_PROCESS) << "x32";
}

TEST(SeccompFilter, IsNotMadeForAMachineThatNobodyKnows) {
  EXPECT_EQ(compile_filter(profile_of("unknown"), "unknown").error().kind, ErrorKind::kUnsupported);
}

TEST(Capabilities, RootHasThoseThatEverybodyGivesAndOthersNone) {
  const auto root = capabilities_of(User{0, 0, {}, "root", "/root"});
  EXPECT_TRUE(std::ranges::is_sorted(root));
  EXPECT_THAT(root, ::testing::Contains("CAP_CHOWN"));
  for (const char* withheld :
       {"CAP_MKNOD", "CAP_NET_RAW", "CAP_AUDIT_WRITE", "CAP_SYS_ADMIN", "CAP_NET_ADMIN"})
    EXPECT_THAT(root, ::testing::Not(::testing::Contains(withheld)));
  EXPECT_TRUE(capabilities_of(User{1, 0, {}, "daemon", "/"}).empty());
}

}  // namespace
}  // namespace drover::container
