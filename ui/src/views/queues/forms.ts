// Forms of queues and quotas: what is in their fields, and what is made of them.

import type { Limits, QueueRule, Quota, QuotaRule, Queue } from "../../net/types";

export interface Input { name: string; label: string; value: string; hint?: string; required?: boolean }

export interface Form {
  title: string;
  inputs: Input[];
  /** As it is now; {} when it is new. */
  before: object;
  target: string;
  list: string;
  /** What becomes of it. */
  read: (values: Map<string, string>) => object;
}

const kUnits: [string, number][] = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

/** Exactly: "64GiB", or bytes. */
function memoryText(memory: number | string | undefined): string {
  if (typeof memory !== "number") return memory ?? "";
  const unit = memory > 0 ? kUnits.find(([, size]) => memory % size === 0) : undefined;
  return unit ? `${memory / unit[1]}${unit[0]}` : String(memory);
}

function limitInputs(name: string, words: string, limits: Limits): Input[] {
  return [
    { name: `${name}/gpus`, label: `GPUs: ${words}`, value: String(limits.gpus ?? "") },
    { name: `${name}/cpus`, label: `CPUs: ${words}`, value: String(limits.cpus ?? "") },
    { name: `${name}/memory`, label: `Memory: ${words}`, value: memoryText(limits.memory), hint: "64GiB, or bytes" },
  ];
}

/** As a number, where it is one: what it may be is for the daemon to judge. */
const amount = (text: string) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : text);

function memory(text: string): number | string {
  const [, number, unit] = /^(\d+) ?([KMGT]iB)$/.exec(text) ?? [];
  return number ? Number(number) * new Map(kUnits).get(unit!)! : amount(text);
}

/** The same with sizes as people write them. */
export function shown(rule: object): object {
  const limits = (value: unknown) => ({ ...(value as Limits), ...((value as Limits).memory === undefined ? {} : { memory: memoryText((value as Limits).memory) }) });
  return Object.fromEntries(Object.entries(rule).map(([name, value]) => [name, name === "limit" || name === "guarantee" ? limits(value) : value]));
}

function readLimits(name: string, values: Map<string, string>): Limits {
  const said = (["gpus", "cpus", "memory"] as const).map((what) => [what, values.get(`${name}/${what}`) ?? ""] as const).filter(([, text]) => text !== "");
  return Object.fromEntries(said.map(([what, text]) => [what, what === "memory" ? memory(text) : amount(text)]));
}

const listed = (text: string) => text.split(",").map((each) => each.trim()).filter(Boolean);
const optional = <T>(name: string, text: string | undefined, made: (text: string) => T) => (text ? { [name]: made(text) } : {});

function queueRule({ queue, guarantee, limit, weight, users, timeout, idle_timeout }: QueueRule): QueueRule {
  return { queue, guarantee, limit, weight, users, ...(timeout ? { timeout } : {}), ...(idle_timeout ? { idle_timeout } : {}) };
}

export function queueForm(of?: Queue): Form {
  const rule = of && queueRule(of);
  return {
    title: of ? `Queue ${of.queue}` : "New queue",
    before: rule ?? {},
    target: "/v1/queues",
    list: "queues",
    inputs: [
      ...(of ? [] : [{ name: "queue", label: "Its path", value: "", hint: "research/vision is within research", required: true }]),
      ...limitInputs("guarantee", "guarantee", rule?.guarantee ?? {}),
      ...limitInputs("limit", "at most", rule?.limit ?? {}),
      { name: "weight", label: "Weight among its siblings", value: String(rule?.weight ?? 1) },
      { name: "users", label: "Who may use it", value: rule?.users.join(", ") ?? "", hint: "names, with commas; nobody named: all" },
      { name: "timeout", label: "So long its tasks run at most", value: rule?.timeout ?? "", hint: "24h" },
      { name: "idle_timeout", label: "So long their GPUs may do nothing", value: rule?.idle_timeout ?? "", hint: "30m" },
    ],
    read: (values) => ({
      queue: of?.queue ?? values.get("queue") ?? "",
      guarantee: readLimits("guarantee", values),
      limit: readLimits("limit", values),
      weight: amount(values.get("weight") || "1"),
      users: listed(values.get("users") ?? ""),
      ...optional("timeout", values.get("timeout"), String),
      ...optional("idle_timeout", values.get("idle_timeout"), String),
    }),
  };
}

export function subjectOf({ user, namespace }: QuotaRule): string {
  return user !== undefined ? `user:${user}` : `namespace:${namespace ?? ""}`;
}

export function quotaForm(of?: Quota): Form {
  const rule: QuotaRule | undefined = of && { ...(of.user !== undefined ? { user: of.user } : { namespace: of.namespace ?? "" }), limit: of.limit, ...(of.max_priority === undefined ? {} : { max_priority: of.max_priority }) };
  const whose = (text: string): object => {
    const [, kind = "user", name = text] = /^(user|namespace):(.*)$/.exec(text) ?? [];
    return { [kind]: name };
  };
  return {
    title: of ? `Quota of ${subjectOf(of)}` : "New quota",
    before: rule ?? {},
    target: "/v1/quotas",
    list: "quotas",
    inputs: [
      ...(of ? [] : [{ name: "user", label: "Whose", value: "", hint: "user:alice or namespace:team-a", required: true }]),
      ...limitInputs("limit", "at most", rule?.limit ?? {}),
      ...(of && of.user === undefined ? [] : [{ name: "max_priority", label: "Highest priority", value: String(rule?.max_priority ?? ""), hint: "of a user's alone; 0 when it is not said" }]),
    ],
    read: (values) => ({
      ...(of ? whose(subjectOf(of)) : whose(values.get("user") ?? "")),
      limit: readLimits("limit", values),
      ...optional("max_priority", values.get("max_priority"), (text) => (/^-?\d+$/.test(text) ? Number(text) : text)),
    }),
  };
}
