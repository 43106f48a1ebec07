// Live answers of the daemon: server-sent events, read by fetch, since an EventSource can show nobody's session.

import { headers } from "./session";

export interface Told { event: string; id: string; data: unknown }

const kFirstPause = 250, kLongestPause = 5000; // ms
const kSilence = 30_000; // ms: the daemon says something every ten seconds

interface Ears { heard: (told: Told) => void; door?: (open: boolean) => void }

/** Reads until the stream ends. Returns whether the daemon said that it would never say more. */
async function hear(path: string, last: { id: string }, ears: Ears, ended: AbortSignal): Promise<boolean> {
  const silent = new AbortController();
  let alarm = setTimeout(() => silent.abort(), kSilence);
  try {
    const answer = await fetch(path, {
      headers: last.id ? { ...headers(), "Last-Event-ID": last.id } : headers(),
      credentials: "omit",
      signal: AbortSignal.any([ended, silent.signal]),
    });
    if (answer.status >= 400 && answer.status < 500) return true;
    if (!answer.ok || !answer.body) return false;
    ears.door?.(true);
    let rest = "";
    for (const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
      const { value, done } = await reader.read();
      if (done) return false;
      clearTimeout(alarm);
      alarm = setTimeout(() => silent.abort(), kSilence);
      const pieces = (rest + value).split("\n\n");
      rest = pieces.pop()!;
      for (const piece of pieces) {
        const told: Told = { event: "", id: last.id, data: undefined };
        let text = "";
        for (const line of piece.split("\n")) {
          const [name, value] = [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)];
          if (name === "event") told.event = value;
          if (name === "id") told.id = value;
          if (name === "data") text += (text ? "\n" : "") + value;
        }
        last.id = told.id;
        if (!text) continue;
        told.data = JSON.parse(text);
        ears.heard(told);
        if (told.event === "end") return true;
      }
    }
  } catch {
    return false;
  } finally {
    clearTimeout(alarm);
  }
}

/** Whoever loses it connects again, and goes on after the last event that he heard. Until the function that is returned is
 * called, or an `end` is told. */
export function follow(path: string, ears: Ears): () => void {
  const own = new AbortController();
  const stay = async () => {
    const last = { id: "" };
    for (let pause = kFirstPause; !own.signal.aborted; pause = Math.min(2 * pause, kLongestPause)) {
      const began = Date.now();
      if (await hear(path, last, ears, own.signal)) return;
      if (own.signal.aborted) return;
      ears.door?.(false);
      if (Date.now() - began > kSilence) pause = kFirstPause;
      await new Promise((then) => setTimeout(then, pause));
    }
  };
  void stay();
  return () => own.abort();
}
