// The same task as a form, as a command line, and as the daemon takes it. Pure.

export type Body = { [field: string]: unknown };

interface Field { name: string; flag: string; label: string; kind: "text" | "number"; hint?: string }

/** What most tasks say. All else that a task may say stays in its JSON. */
export const kFields: Field[] = [
  { name: "name", flag: "--name", label: "Name", kind: "text" },
  { name: "gpus", flag: "--gpus", label: "GPUs", kind: "number", hint: "how many" },
  { name: "gpu_share", flag: "--gpu-share", label: "Of each GPU", kind: "text", hint: "0.5 or 8GiB; else all of it" },
  { name: "gpu_model", flag: "--gpu-model", label: "GPU model", kind: "text", hint: "A100; else any" },
  { name: "interconnect", flag: "--interconnect", label: "GPUs at least so near", kind: "text", hint: "nvlink, switch, node; else any" },
  { name: "cpus", flag: "--cpus", label: "CPUs", kind: "number", hint: "else its GPUs' part of the machine" },
  { name: "memory", flag: "--mem", label: "Memory", kind: "text", hint: "16GiB" },
  { name: "image", flag: "--image", label: "Image", kind: "text", hint: "else what the machine has" },
  { name: "queue", flag: "--queue", label: "Queue", kind: "text" },
  { name: "priority", flag: "--priority", label: "Priority", kind: "number" },
  { name: "timeout", flag: "--timeout", label: "Stopped after", kind: "text", hint: "90s, 2h" },
  { name: "idle_timeout", flag: "--idle-timeout", label: "Stopped when idle for", kind: "text", hint: "30m" },
  { name: "retries", flag: "--retries", label: "Retries", kind: "number" },
];

/** As a shell reads them: quotes and backslashes. undefined: a quote is not closed. */
export function words(text: string): string[] | undefined {
  const found: string[] = [];
  let word: string | undefined, quote = "";
  for (let at = 0; at < text.length; ++at) {
    const letter = text[at]!;
    if (quote) {
      if (letter === quote) quote = "";
      else if (letter === "\\" && quote === '"' && '"\\$`'.includes(text[at + 1] ?? "")) word += text[++at]!;
      else word += letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      word ??= "";
    } else if (letter === "\\" && at + 1 < text.length) word = (word ?? "") + text[++at]!;
    else if (/\s/.test(letter)) {
      if (word !== undefined) found.push(word);
      word = undefined;
    } else word = (word ?? "") + letter;
  }
  if (quote) return undefined;
  if (word !== undefined) found.push(word);
  return found;
}

export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function read(field: Field, text: string): unknown {
  if (text.trim() === "") return undefined;
  return field.kind === "number" && !Number.isNaN(Number(text)) ? Number(text) : text;
}

export function changed(body: Body, name: string, value: unknown): Body {
  const made = { ...body };
  if (value === undefined) delete made[name];
  else made[name] = value;
  return made;
}

const list = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : value === undefined ? [] : [String(value)]);

/** Fields that have no flag here are not in it. */
export function lineOf(body: Body): string {
  const line = ["drover", "run", "--detach"];
  for (const { name, flag } of kFields) for (const value of list(body[name])) line.push(flag, quoted(value));
  for (const [name, value] of Object.entries((body.env ?? {}) as { [name: string]: string })) line.push("--env", quoted(`${name}=${value}`));
  const command = list(body.command);
  if (command.length > 0) line.push("--", ...command.map(quoted));
  return line.join(" ");
}

/** What a command line says, over the fields of `before` that no flag here is for. A sentence when it cannot be read. */
export function bodyOf(line: string, before: Body): Body | string {
  const given = words(line);
  if (!given) return "A quote is not closed";
  let body: Body = { ...before };
  for (const { name } of kFields) delete body[name];
  delete body.env;
  delete body.command;
  const rest = given.slice(given[0] === "drover" ? (given[1] === "run" ? 2 : 1) : 0);
  const env: { [name: string]: string } = {};
  while (rest.length > 0) {
    const word = rest.shift()!;
    if (word === "--detach" || word === "-d") continue;
    if (word === "--" || !word.startsWith("-")) {
      const command = word === "--" ? rest : [word, ...rest];
      if (command.length > 0) body.command = [...command];
      break;
    }
    const [flag, own] = word.includes("=") ? [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)] : [word, undefined];
    const value = own ?? rest.shift();
    if (value === undefined) return `${flag} takes a value`;
    if (flag === "--env" || flag === "-e") {
      const equal = value.indexOf("=");
      if (equal < 1) return `${flag} takes NAME=VALUE`;
      env[value.slice(0, equal)] = value.slice(equal + 1);
      continue;
    }
    const field = kFields.find((each) => each.flag === (flag === "-m" ? "--mem" : flag));
    if (!field) return `${flag} is not known here: the JSON beside says it by its field`;
    const old = body[field.name];
    body = changed(body, field.name, old === undefined || field.kind === "number" ? read(field, value) : [...list(old), value]);
  }
  if (Object.keys(env).length > 0) body.env = env;
  return body;
}

/** A request for the same again, of a task's record. */
export function bodyLike(task: Body): Body {
  const kept = ["name", "command", "image", "env", "gpus", "gpu_model", "interconnect", "cpus", "queue", "priority", "retries", "labels"];
  const body: Body = {};
  for (const name of kept) {
    const value = task[name];
    const isNothing = value === undefined || value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
    if (!isNothing && !(name === "priority" && value === 0)) body[name] = value;
  }
  const share = task.gpu_share as { memory_bytes?: number; milli?: number } | undefined;
  if (share?.memory_bytes) body.gpu_share = `${share.memory_bytes / 2 ** 20}MiB`;
  else if (share?.milli) body.gpu_share = share.milli / 1000;
  const { cpus, memory } = (task.asked ?? {}) as { cpus?: number; memory?: number };
  if (cpus === undefined) delete body.cpus;
  if (memory !== undefined) body.memory = memory;
  return body;
}

/** What a remedy says otherwise, by a record's fields; null: nothing of it. */
export function heeding(body: Body, changes: Body): Body {
  const { cpus, memory } = changes;
  const said: Body = { ...changes, ...bodyLike({ ...changes, asked: { cpus: cpus ?? undefined, memory: memory ?? undefined } }) };
  return Object.keys(changes).reduce((made, name) => changed(made, name, said[name] ?? undefined), body);
}
