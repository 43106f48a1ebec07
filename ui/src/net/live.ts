// What happens on the machine, as the daemon tells it: one stream for the whole page. The browser connects again by itself,
// and goes on after the last event that it heard.

type Listener = (event: MachineEvent) => void;

export interface MachineEvent { kind: string; number: number; at: string; message: string; task?: string; gpus?: string[] }

const listeners = new Set<Listener>();
const doors = new Set<(open: boolean) => void>();
let source: EventSource | undefined;

const kKinds = ["task_queued", "task_starting", "task_preparing", "task_running", "task_stopping", "task_ended", "gpu_unhealthy", "gpu_healthy"];

export function begin(): void {
  if (source) return;
  source = new EventSource("/v1/events");
  source.onopen = () => doors.forEach((door) => door(true));
  source.onerror = () => doors.forEach((door) => door(false));
  const tell = (message: MessageEvent) => {
    const event = JSON.parse(message.data) as MachineEvent;
    listeners.forEach((listener) => listener(event));
  };
  for (const kind of kKinds) source.addEventListener(kind, tell);
}

export function end(): void {
  source?.close();
  source = undefined;
}

export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the daemon is heard. */
export function watchDoor(door: (open: boolean) => void): () => void {
  doors.add(door);
  return () => doors.delete(door);
}
