// Queues and quotas, as long as a view wants them, and what would become of a change.

import { ask, get, refusal, type Refusal } from "./api";
import { Calm } from "./calm";
import { Kept } from "./state";
import type { Caller, Queue, Quota } from "./types";

export const queues = new Calm(() => get<{ queues: Queue[] }>("/v1/queues").then((answer) => answer.queues), (event) => event.task !== undefined);
export const quotas = new Calm(() => get<{ quotas: Quota[] }>("/v1/quotas").then((answer) => answer.quotas), (event) => event.task !== undefined);
export const caller = new Kept(() => get<Caller>("/v1/whoami"), () => false);

export interface Change { target: string; body: { [list: string]: unknown[] } }

/** Throws what the daemon would say against it. */
export async function tryOut({ target, body }: Change): Promise<void> {
  const { answers } = await ask<{ answers: { status: number; body?: unknown }[] }>("POST", "/v1/dry-run", { requests: [{ method: "PUT", target, body }] });
  const against: Refusal[] = answers.filter(({ status }) => status >= 400).map(({ status, body }) => refusal(status, JSON.stringify(body)));
  if (against[0]) throw against[0];
}

export async function carryOut({ target, body }: Change): Promise<void> {
  await ask("PUT", target, body);
  refreshSharing();
}

/** No event tells of changes of rules. */
export function refreshSharing(): void {
  queues.refresh();
  quotas.refresh();
}
