// What docs/openapi.yaml says of the answers that the page reads, as far as it reads them.

export interface Problem { kind: string; message: string }

export interface GpuUse {
  gpu_percent: number | null;
  memory_used_bytes: number | null;
  power_mw: number | null;
  temperature: number | null;
  foreign: { memory_bytes: number; processes: number };
}

export interface Holder { task: string; user?: string; milli?: number; memory?: number; tier?: string }

export interface Gpu {
  index: number;
  uuid: string;
  model: string;
  memory_bytes: number;
  healthy: boolean;
  unfit: string;
  cordoned: string;
  mig: string;
  numa_node: number | null;
  pci: string;
  node: string;
  holders: Holder[];
  usage?: GpuUse | null;
}

export interface Gpus { gpus: Gpu[]; driver_version: string; cuda_version: string }

export interface Link { label: string; nvlinks: number; pcie: string }
export interface Topology { gpus: { index: number; uuid: string; model: string; numa_node: number | null }[]; links: Link[][]; problems: string[] }

export interface Grant { gpu: string; memory: number; milli: number; tier?: string }

export interface TaskSummary {
  state: string;
  reason: string;
  submitted_at: string;
  started_at?: string;
  finished_at?: string;
  grants: Grant[];
  task: { id: string; name: string; queue: string; priority: number; gpus: number; gpu_share?: { memory_bytes?: number; milli?: number }; user: { name: string } };
}

/** What a task used over its life; what nobody could measure is left out. */
export interface Use {
  gpu_percent_mean?: number;
  gpu_memory_bytes_max?: number;
  cpu_seconds?: number;
  memory_bytes_max?: number;
  network_received_bytes?: number;
  network_sent_bytes?: number;
  disk_read_bytes?: number;
  disk_written_bytes?: number;
  advice?: string;
}

/** Columns of one length, of which `time` has no null. */
export type TaskStats = { task: string; resolution: number; use: Use; time: number[] } & { [column: string]: (number | null)[] };

/** A task's whole record, as far as the page reads it. */
export type Record = TaskSummary & { node?: string };

/** `task`: what its definition would say otherwise; null: nothing of it. */
export interface Change { remedy: string; task: { [field: string]: unknown } }

export interface Explanation { state: string; place?: number; queue: string; reasons: string[]; remedies: string[]; changes: Change[] }

/** What an event is part of besides: the id of a service, or the name of a job. */
export interface PartOf { part_of?: string }

// Services, as the Marathon API has them.

export interface CheckResult { alive: boolean; consecutiveFailures: number; lastFailureCause: string | null }

export interface Instance {
  id: string;
  state: string;
  version: string;
  host: string;
  ports: number[];
  stagedAt: string;
  startedAt?: string;
  healthCheckResults?: CheckResult[];
}

export interface App {
  id: string;
  cmd?: string | null;
  instances: number;
  version: string;
  versionInfo?: { lastConfigChangeAt: string };
  healthChecks: unknown[];
  tasksRunning: number;
  tasksHealthy: number;
  tasksUnhealthy: number;
  deployments: { id: string }[];
  tasks?: Instance[];
  lastTaskFailure?: { message: string; taskId: string; timestamp: string; version: string };
}

export interface Deployment {
  id: string;
  version: string;
  affectedApps: string[];
  currentActions: { action: string; app: string; readinessCheckResults: { name: string; taskId: string; ready: boolean }[] }[];
  currentStep: number;
  totalSteps: number;
}

export interface Queued { app: { id: string }; processedOffersSummary: { reasons?: string[] } }

// Schedules, as the Chronos API has them.

export interface Job {
  name: string;
  command?: string;
  schedule?: string;
  scheduleTimeZone?: string;
  parents?: string[];
  disabled: boolean;
  successCount: number;
  errorCount: number;
  lastSuccess: string;
  lastError: string;
}

export interface Run { taskId: string; startTime: string; endTime: string; duration: string; status: string; reason?: string }
export interface Statistics { taskStatHistory: Run[]; skippedRuns?: { lastDue: string; count: number; reason: string }[] }

// How the machine is shared.

export interface Amounts { gpus: number; cpus: number; memory: number }
export type Limits = { [what in keyof Amounts]?: number | string };

export interface QueueRule {
  queue: string;
  limit: Limits;
  guarantee: Limits;
  weight: number;
  users: string[];
  timeout?: string;
  idle_timeout?: string;
}

export interface Waiting {
  id: string | null;
  user: string;
  wanted: Amounts;
  members: number;
  priority: number | null;
  submitted_at: string;
  reasons: string[];
  place: number;
}

export interface Queue extends QueueRule { used: Amounts; usable: boolean; waiting: Waiting[] }

export interface QuotaRule { user?: string; namespace?: string; limit: Limits; max_priority?: number }
export interface Quota extends QuotaRule { used: Amounts }

export interface Caller { name: string; uid: number; root: boolean }
