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

/** A task's whole record, as far as the page reads it. */
export type Record = TaskSummary;

export interface Explanation { state: string; place?: number; queue: string; reasons: string[]; remedies: string[] }
