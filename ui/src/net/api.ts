// What the page asks of the daemon. Every answer that is no success is thrown as a Refusal, in the daemon's own words.

import { headers as ours } from "./session";

export class Refusal extends Error {
  constructor(readonly status: number, readonly kind: string, message: string, readonly hint: string, readonly field: string) {
    super(message);
  }
}

const kPatience = 30_000; // ms

export function refusal(status: number, body: string): Refusal {
  try {
    const { error } = JSON.parse(body);
    return new Refusal(status, error.kind, error.message, error.hint ?? "", error.path ?? "");
  } catch {
    return new Refusal(status, "unavailable", `The daemon answered with ${status}`, "", "");
  }
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
      headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(0, "unavailable", "The daemon does not answer", "is 'drover serve' running?", "");
  }
  if (answer.status === 401 && path !== "/v1/login") stranger();
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer.status, text);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

export const get = <T>(path: string) => ask<T>("GET", path);
