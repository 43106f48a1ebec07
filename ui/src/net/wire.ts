// The APIs of Marathon and Chronos, which the daemon speaks besides its own: what it refuses there stands in their forms.

import { Refusal, refusal, stranger } from "./api";
import { headers } from "./session";

const kPatience = 30_000; // ms

/** {"message": …, "details": [{"path": …, "errors": […]}]}, or {"status": …, "message": …}. */
function refused(status: number, body: string): Refusal {
  try {
    const { message, details = [] } = JSON.parse(body) as { message?: string; details?: { path: string; errors: string[] }[] };
    if (typeof message !== "string") return refusal(status, body);
    const where = details.flatMap(({ path, errors }) => errors.map((error) => (path === "/" ? error : `${path}: ${error}`)));
    return new Refusal(status, "", message.replace(/\.$/, ""), where.join("; "), "");
  } catch {
    return refusal(status, body);
  }
}

export async function askWire<T>(method: string, path: string, body?: unknown): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      credentials: "omit",
      signal: AbortSignal.timeout(kPatience),
      headers: { ...headers(), Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(0, "unavailable", "The daemon does not answer", "is 'drover serve' running?", "");
  }
  if (answer.status === 401) stranger();
  const text = await answer.text();
  if (!answer.ok) throw refused(answer.status, text);
  return (answer.headers.get("Content-Type")?.includes("json") && text ? JSON.parse(text) : undefined) as T;
}

export const getWire = <T>(path: string) => askWire<T>("GET", path);
