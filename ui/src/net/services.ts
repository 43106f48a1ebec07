// Services and their deployments, as long as a view wants them. What changes them is told by the stream of Marathon's API.

import { Calm } from "./calm";
import { listen } from "./live";
import { follow } from "./stream";
import type { App, Deployment, Queued } from "./types";
import { get } from "./api";

export interface Services { apps: App[]; deployments: Deployment[]; queue: Queued[] }
export interface Service extends Services { app: App; versions: string[] }

class Served<T extends Services> extends Calm<T> {
  constructor(find: () => Promise<T>) {
    super(find, () => false);
  }

  protected override begin(): () => void {
    const leave = [
      super.begin(),
      follow("/v2/events", { heard: () => this.refresh(), door: (open) => open && this.refresh() }),
      // Why something waits is new when others come and go.
      listen((event) => event.task && this.value && this.value.queue.length > 0 && this.refresh()),
    ];
    return () => leave.forEach((each) => each());
  }
}

const deployments = () => get<Deployment[]>("/v2/deployments");

/** "in 53 s" would soon be wrong: they are told when. */
function timed(reason: string): string {
  return reason.replace(/ in (\d+) s$/, (_, seconds) => ` at ${new Date(Date.now() + 1000 * Number(seconds)).toLocaleTimeString("en-GB")}`);
}

async function queue(): Promise<Queued[]> {
  const answer = await get<{ queue: Queued[] }>("/v2/queue");
  return answer.queue.map(({ app: { id }, processedOffersSummary: { reasons = [] } }) => ({ app: { id }, processedOffersSummary: { reasons: reasons.map(timed) } }));
}

const app = (id: string) => get<{ app: App }>(`/v2/apps${id}`).then((answer) => answer.app);
const path = (id: string) => id.split("/").map(encodeURIComponent).join("/");

/** Those that are deployed, with their instances; the others with their counts alone. */
async function findServices(): Promise<Services> {
  const [{ apps }, under, waiting] = await Promise.all([get<{ apps: App[] }>("/v2/apps"), deployments(), queue()]);
  const ids = new Set(under.flatMap((each) => each.currentActions.map((action) => action.app)));
  const whole = await Promise.all(apps.map((each) => (ids.has(each.id) ? app(path(each.id)).catch(() => each) : each)));
  return { apps: whole, deployments: under, queue: waiting };
}

async function findService(id: string): Promise<Service> {
  const [own, { versions }, under, waiting] = await Promise.all([
    app(path(id)), get<{ versions: string[] }>(`/v2/apps${path(id)}/versions`), deployments(), queue()]);
  return { app: own, apps: [own], versions, deployments: under.filter((each) => each.affectedApps.includes(id)), queue: waiting.filter((each) => each.app.id === id) };
}

export const services = new Served(findServices);
export const serviceOf = (id: string) => new Served(() => findService(id));
export const pathOf = (id: string, rest = "") => `/v2/apps${path(id)}${rest}`;

/** What an app waits for, and how an instance of it failed last. The words are the daemon's. */
export function waitsOf(id: string, { apps, queue }: Services): string[] {
  const own = apps.find((each) => each.id === id);
  if (!own) return ["its instances end"];
  const words = queue.filter((each) => each.app.id === id).flatMap((each) => each.processedOffersSummary.reasons ?? []);
  const checked = own.healthChecks.length > 0;
  for (const { state, healthCheckResults = [] } of own.tasks ?? []) {
    if (checked && state === "TASK_RUNNING" && healthCheckResults.length === 0) words.push("its first health check");
    for (const { alive, lastFailureCause } of healthCheckResults) if (!alive && lastFailureCause) words.push(`its health check fails: ${lastFailureCause}`);
  }
  const failure = own.lastTaskFailure;
  if (failure && failure.version >= (own.versionInfo?.lastConfigChangeAt ?? "")) words.push(`an instance failed last: ${failure.message}`);
  return [...new Set(words)];
}
