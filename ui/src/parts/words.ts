// Amounts as people read them. The same words as the command line's.

import { useEffect, useState } from "preact/hooks";

const kUnits = ["B", "KiB", "MiB", "GiB", "TiB"];

/** "9.3 GiB". */
export function bytes(amount: number): string {
  let unit = 0;
  while (amount >= 1024 && unit + 1 < kUnits.length) {
    amount /= 1024;
    ++unit;
  }
  return `${amount >= 100 || Number.isInteger(amount) ? Math.round(amount) : amount.toFixed(1)} ${kUnits[unit]}`;
}

/** "3m 20s", of milliseconds. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const parts: [number, string][] = [[Math.floor(seconds / 86400), "d"], [Math.floor(seconds / 3600) % 24, "h"], [Math.floor(seconds / 60) % 60, "m"], [seconds % 60, "s"]];
  const first = parts.findIndex(([count]) => count > 0);
  return first < 0 ? "0s" : parts.slice(first, first + 2).map(([count, unit]) => `${count}${unit}`).join(" ");
}

/** How long ago that was. */
export function since(time: string | undefined, now = Date.now()): string {
  return time ? duration(now - Date.parse(time)) : "";
}

/** "1 GPU", "2 GPUs". */
export function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

/** The time, second by second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
