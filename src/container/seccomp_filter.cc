#include "container/seccomp_filter.h"

#include <fmt/format.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/files.h"
#include "container/capabilities.h"
#include "container/seccomp.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr mode_t kFilterMode = 0644;
constexpr std::uint32_t kTreeOfCalls = 2;  // a binary search instead of one comparison after the other
using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

/// libseccomp answers with errno, negative.
Status checked(int code, const char* what) {
  if (code == 0) return {};
  return fail(ErrorKind::kInternal,
              fmt::format("Failed to make the filter of system calls ({}): {}", what, ::strerror(-code)));
}

scmp_compare comparison_called(const std::string& name) {
  if (name == "SCMP_CMP_GT") return SCMP_CMP_GT;
  return name == "SCMP_CMP_MASKED_EQ" ? SCMP_CMP_MASKED_EQ : SCMP_CMP_EQ;
}

std::vector<scmp_arg_cmp> conditions_of(const json& rule) {
  std::vector<scmp_arg_cmp> conditions;
  for (const auto& condition : rule.value("args", json::array()))
    conditions.push_back(
        {condition["index"].get<unsigned>(), comparison_called(condition["op"].get<std::string>()),
         condition["value"].get<std::uint64_t>(), condition["valueTwo"].get<std::uint64_t>()});
  return conditions;
}

std::uint32_t refusal(int error) {
  return SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error));
}

std::uint32_t action_of(const json& rule) {
  return rule["action"] == "SCMP_ACT_ALLOW" ? SCMP_ACT_ALLOW : refusal(rule["errnoRet"].get<int>());
}

Status add(scmp_filter_ctx filter, const json& rule) {
  const auto conditions = conditions_of(rule);
  for (const auto& name : rule["names"]) {
    const auto& call = name.get_ref<const std::string&>();
    const int number = seccomp_syscall_resolve_name(call.c_str());
    if (number == __NR_SCMP_ERROR) continue;
    DROVER_CHECK_OK(
        checked(seccomp_rule_add_array(filter, action_of(rule), number,
                                       static_cast<unsigned>(conditions.size()), conditions.data()),
                call.c_str()));
  }
  return {};
}

Result<std::string> bytes_of(scmp_filter_ctx filter) {
  const UniqueFd memory(::memfd_create("drover-seccomp", MFD_CLOEXEC));
  if (!memory.valid()) return fail_errno("Failed to make room for the filter of system calls", errno);
  DROVER_CHECK_OK(checked(seccomp_export_bpf(filter, memory.get()), "export"));
  if (::lseek(memory.get(), 0, SEEK_SET) != 0)
    return fail_errno("Failed to read the filter of system calls", errno);
  return read_all(memory.get(), "the filter of system calls");
}

Result<std::string> place(const std::string& path, const User& user, std::string_view machine) {
  DROVER_TRY(const auto program, compile_filter(seccomp_profile(machine, capabilities_of(user)), machine));
  if (const auto there = read_file(path); there && *there == program) return path;
  DROVER_CHECK_OK(write_file(path, program, kFilterMode));
  return path;
}

}  // namespace

Result<std::string> compile_filter(const json& profile, std::string_view machine) {
  const auto architecture = seccomp_arch_resolve_name(std::string(machine).c_str());
  if (architecture == 0)
    return fail(ErrorKind::kUnsupported,
                fmt::format("libseccomp knows no machine '{}', so that tasks cannot be limited", machine));
  const auto otherwise = refusal(profile["defaultErrnoRet"].get<int>());
  const Filter filter(seccomp_init(otherwise), &seccomp_release);
  if (!filter) return fail(ErrorKind::kInternal, "Failed to begin the filter of system calls");
  if (architecture != seccomp_arch_native()) {
    DROVER_CHECK_OK(checked(seccomp_arch_remove(filter.get(), seccomp_arch_native()), "machine"));
    DROVER_CHECK_OK(checked(seccomp_arch_add(filter.get(), architecture), "machine"));
  }
  DROVER_CHECK_OK(checked(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
                          "other interfaces"));
  DROVER_CHECK_OK(checked(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, kTreeOfCalls), "order"));
  for (const auto& rule : profile["syscalls"])
    if (action_of(rule) != otherwise) DROVER_CHECK_OK(add(filter.get(), rule));
  return bytes_of(filter.get());
}

Result<FilterFiles> place_filters(const std::string& state) {
  utsname name{};
  ::uname(&name);
  FilterFiles files;
  DROVER_TRY(files.users, place(state + "/seccomp-users", User{1, 1, {}, "", ""}, name.machine));
  DROVER_TRY(files.roots, place(state + "/seccomp-roots", User{0, 0, {}, "", ""}, name.machine));
  return files;
}

}  // namespace drover::container
