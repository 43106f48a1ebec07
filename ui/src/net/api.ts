// What the page asks of the daemon. Every answer that is no success is thrown as a Refusal, in the daemon's own words.

import { headers as ours } from "./session";

export class Refusal extends Error {
  constructor(readonly status: number, readonly kind: string, message: string, readonly hint: string, readonly field: string) {
    super(message);
  }
}

const kPatience = 30_000; // ms

interface Refused {
  error?: { kind: string; message: string; hint?: string; path?: string };
  // Marathon's and Chronos' forms, whose APIs the daemon speaks besides its own.
  message?: string;
  details?: { path: string; errors: string[] }[];
}

export function refusal(status: number, body: string): Refusal {
  try {
    const { error, message, details = [] } = JSON.parse(body) as Refused;
    if (error) return new Refusal(status, error.kind, error.message, error.hint ?? "", error.path ?? "");
    if (message) {
      const where = details.flatMap(({ path, errors }) => errors.map((each) => (path === "/" ? each : `${path}: ${each}`)));
      return new Refusal(status, "", message.replace(/\.$/, ""), where.join("; "), "");
    }
  } catch {
    // Told below.
  }
  return new Refusal(status, "unavailable", `The daemon answered with ${status}`, "", "");
}

/** Whoever has to log in hears of it. */
let strangers: () => void = () => undefined;
export function onStranger(then: () => void): void {
  strangers = then;
}
export const stranger = () => strangers();

export async function ask<T>(method: string, path: string, body?: unknown, headers = ours()): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      credentials: "omit",
      signal: AbortSignal.timeout(kPatience),
      headers: { ...headers, Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(0, "unavailable", "The daemon does not answer", "is 'drover serve' running?", "");
  }
  if (answer.status === 401 && path !== "/v1/login") stranger();
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer.status, text);
  return (answer.headers.get("Content-Type")?.includes("json") && text ? JSON.parse(text) : undefined) as T;
}

export const get = <T>(path: string) => ask<T>("GET", path);
