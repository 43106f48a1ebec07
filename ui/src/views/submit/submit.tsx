import { useEffect, useState } from "preact/hooks";
import { ask, get, type Refusal } from "../../net/api";
import { session } from "../../net/session";
import type { Change, Explanation } from "../../net/types";
import { go } from "../../parts/route";
import { Trouble } from "../../parts/trouble";
import { bodyLike, bodyOf, changed, heeding, kFields, lineOf, quoted, read, words, type Body } from "./fields";

interface Plan {
  starts_now: boolean;
  place?: number;
  reasons: string[];
  remedies: string[];
  changes: Change[];
  victims: number;
  members: { gpus: { index?: number; gpu?: string }[]; node?: string }[];
}

const kPause = 250; // ms without a key before the daemon is asked
const kFirst: Body = { gpus: 1, command: ["nvidia-smi", "-L"] };

/** What would become of it now. Nothing is submitted. */
function usePlan(body: Body) {
  const [plan, setPlan] = useState<Plan>();
  const [refused, setRefused] = useState<Refusal>();
  const text = JSON.stringify(body);
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      ask<Plan>("POST", "/v1/plan", JSON.parse(text)).then(
        (answer) => current && (setPlan(answer), setRefused(undefined)), (error) => current && (setPlan(undefined), setRefused(error)));
    }, kPause);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text]);
  return { plan, refused };
}

function Planned({ plan, refused, heed }: { plan: Plan | undefined; refused: Refusal | undefined; heed: (change: Change) => void }) {
  const changes = new Map(plan?.changes.map((change) => [change.remedy, change]));
  return (
    <section aria-labelledby="plan" aria-live="polite" class="planned">
      <h2 id="plan">What would become of it now</h2>
      {refused ? <pre class="trouble">{refused.message}{refused.hint ? `\n${refused.hint}` : ""}</pre> : null}
      {plan ? <p>{plan.starts_now ? "It would start at once." : `It would wait${plan.place ? `, at place ${plan.place}` : ""}.`} {plan.victims > 0 ? `${plan.victims} of others would make way.` : ""}</p> : null}
      {plan && plan.reasons.length > 0 ? <ul>{plan.reasons.map((reason) => <li key={reason}>{reason}</li>)}</ul> : null}
      {plan && plan.remedies.length > 0 ? (
        <>
          <p>What helps:</p>
          <ul>
            {plan.remedies.map((remedy) => {
              const change = changes.get(remedy);
              return <li key={remedy}>{change ? <button type="button" onClick={() => heed(change)}>{remedy}</button> : remedy}</li>;
            })}
          </ul>
        </>
      ) : null}
    </section>
  );
}

function Form({ body, set }: { body: Body; set: (body: Body) => void }) {
  const [command, setCommand] = useState<string>();
  const written = ((body.command ?? []) as string[]).map(quoted).join(" ");
  return (
    <fieldset class="fields">
      <legend>As a form</legend>
      <label>Command
        <input value={command ?? written} onInput={(event) => {
          const text = event.currentTarget.value, found = words(text);
          setCommand(text);
          if (found) set(changed(body, "command", found.length === 0 ? undefined : found));
        }} onBlur={() => setCommand(undefined)} />
      </label>
      {kFields.map((field) => (
        <label key={field.name}>{field.label}
          <input inputMode={field.kind === "number" ? "decimal" : "text"} placeholder={field.hint ?? ""} value={body[field.name] === undefined ? "" : String(body[field.name])}
            onInput={(event) => set(changed(body, field.name, read(field, event.currentTarget.value)))} />
        </label>
      ))}
    </fieldset>
  );
}

interface Text { label: string; text: string; parse: (text: string) => Body | string; set: (body: Body) => void; rows: number }

/** Text that is the task too, as soon as it can be read. */
function Written({ label, text, parse, set, rows }: Text) {
  const [own, setOwn] = useState<string>();
  const [wrong, setWrong] = useState("");
  return (
    <label class="written">{label}
      <textarea rows={rows} spellcheck={false} value={own ?? text} aria-invalid={wrong !== ""} onInput={(event) => {
        const typed = event.currentTarget.value, found = parse(typed);
        setOwn(typed);
        setWrong(typeof found === "string" ? found : "");
        if (typeof found !== "string") set(found);
      }} onBlur={() => wrong === "" && setOwn(undefined)} />
      {wrong ? <span class="trouble" role="alert">{wrong}</span> : null}
    </label>
  );
}

function parseJson(text: string): Body | string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : "A task is an object, in braces";
  } catch (error) {
    return (error as Error).message;
  }
}

/** The same again, or what a remedy says instead as long as the daemon says that it helps. */
async function again(id: string, remedy: string | null): Promise<Body> {
  const path = `/v1/tasks/${encodeURIComponent(id)}`;
  const { task } = await get<{ task: Body }>(path);
  const told = remedy === null ? undefined : await get<Explanation>(`${path}/explain`);
  return heeding(bodyLike(task), told?.changes.find((change) => change.remedy === remedy)?.task ?? {});
}

export function Submit() {
  const [body, setBody] = useState<Body>(kFirst);
  const [trouble, setTrouble] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const { plan, refused } = usePlan(body);
  useEffect(() => {
    const asked = new URLSearchParams(location.search), like = asked.get("like");
    if (like && session() !== undefined) again(like, asked.get("heed")).then(setBody, setTrouble);
  }, []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const { task } = await ask<{ task: { id: string } }>("POST", "/v1/tasks", body);
      go(`/tasks/${task.id}`);
    } catch (error) {
      setTrouble(error as Error);
      setBusy(false);
    }
  };
  return (
    <form onSubmit={submit}>
      <h1>Submit a task</h1>
      <Trouble of={trouble} />
      <div class="sides">
        <Form body={body} set={setBody} />
        <div>
          <Written label="As a command line" rows={3} text={lineOf(body)} parse={(text) => bodyOf(text, body)} set={setBody} />
          <Written label="As JSON" rows={14} text={JSON.stringify(body, null, 2)} parse={parseJson} set={setBody} />
        </div>
        <Planned plan={plan} refused={refused} heed={(change) => setBody(heeding(body, change.task))} />
      </div>
      <button type="submit" disabled={busy}>Submit</button>
    </form>
  );
}
