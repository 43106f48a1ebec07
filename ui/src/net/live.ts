// What happens on the machine, as the daemon tells it: one stream for the whole page.

import { follow } from "./stream";

export interface MachineEvent { kind: string; number: number; at: string; message: string; task?: string; gpus?: string[] }

const listeners = new Set<(event: MachineEvent) => void>();
const doors = new Set<(open: boolean) => void>();
let leave: (() => void) | undefined;

export function begin(): void {
  leave ??= follow("/v1/events?limit=1", {
    heard: ({ data }) => listeners.forEach((listener) => listener(data as MachineEvent)),
    door: (open) => doors.forEach((door) => door(open)),
  });
}

export function end(): void {
  leave?.();
  leave = undefined;
}

export function listen(listener: (event: MachineEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the daemon is heard. */
export function watchDoor(door: (open: boolean) => void): () => void {
  doors.add(door);
  return () => doors.delete(door);
}
