#pragma once

// What a task was made for. Values.

#include <string>

namespace drover::workload {

enum class OriginKind {
  kPerson,     ///< somebody submitted it
  kService,    ///< an instance of a service
  kSchedule,   ///< a run of a schedule
  kFramework,  ///< launched on an offer
};

struct Origin {
  OriginKind kind = OriginKind::kPerson;
  std::string
      name;  ///< of the service ("/shop/web"), of the schedule, or id of the framework; "" for a person
  std::string task_id;  ///< by which those who use that API know the task; unique among those of one name
  std::string version;  ///< of the service's definition that it runs

  bool operator==(const Origin&) const = default;
  auto operator<=>(const Origin&) const = default;
};

}  // namespace drover::workload
