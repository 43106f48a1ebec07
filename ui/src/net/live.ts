// What happens on the machine, as the daemon tells it: one stream for the whole page. Whoever loses it connects again, and
// goes on after the last event that he heard.

import { headers } from "./session";

export interface MachineEvent { kind: string; number: number; at: string; message: string; task?: string; gpus?: string[] }

type Listener = (event: MachineEvent) => void;

const kFirstPause = 250, kLongestPause = 5000; // ms
const kSilence = 30_000; // ms: the daemon says something every ten seconds

const listeners = new Set<Listener>();
const doors = new Set<(open: boolean) => void>();
let stop: AbortController | undefined;

/** Reads until the stream ends. Each event is told. */
async function hear(last: { id: string }, ended: AbortSignal): Promise<void> {
  const silent = new AbortController();
  let alarm = setTimeout(() => silent.abort(), kSilence);
  const answer = await fetch(last.id ? "/v1/events" : "/v1/events?limit=0", {
    headers: last.id ? { ...headers(), "Last-Event-ID": last.id } : headers(),
    credentials: "omit",
    signal: AbortSignal.any([ended, silent.signal]),
  });
  if (!answer.ok || !answer.body) throw new Error(String(answer.status));
  doors.forEach((door) => door(true));
  let rest = "";
  for (const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
    const { value, done } = await reader.read();
    if (done) break;
    clearTimeout(alarm);
    alarm = setTimeout(() => silent.abort(), kSilence);
    const pieces = (rest + value).split("\n\n");
    rest = pieces.pop()!;
    for (const piece of pieces) {
      const lines = piece.split("\n");
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      last.id = field("id") ?? last.id;
      const data = field("data");
      if (data) listeners.forEach((listener) => listener(JSON.parse(data) as MachineEvent));
    }
  }
  clearTimeout(alarm);
}

async function stay(ended: AbortSignal): Promise<void> {
  const last = { id: "" };
  for (let pause = kFirstPause; !ended.aborted; pause = Math.min(2 * pause, kLongestPause)) {
    const began = Date.now();
    await hear(last, ended).catch(() => undefined);
    if (ended.aborted) return;
    doors.forEach((door) => door(false));
    if (Date.now() - began > kSilence) pause = kFirstPause;
    await new Promise((then) => setTimeout(then, pause));
  }
}

export function begin(): void {
  stop ??= new AbortController();
  void stay(stop.signal);
}

export function end(): void {
  stop?.abort();
  stop = undefined;
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
