import { useMemo } from "preact/hooks";
import { pathOf, serviceOf, waitsOf, type Service as Known } from "../../net/services";
import { useShared } from "../../net/state";
import type { App, Instance } from "../../net/types";
import { ask } from "../../net/api";
import { useDeeds } from "../../parts/deeds";
import { Field } from "../../parts/field";
import { TaskLink } from "../../parts/links";
import { List } from "../../parts/list";
import { Moment } from "../../parts/moment";
import { Named, Said } from "../../parts/named";
import { Link } from "../../parts/route";
import { Trouble } from "../../parts/trouble";
import { count, since } from "../../parts/words";
import { Deployments } from "./deployments";
import { Force } from "./force";
import { Versions } from "./versions";

export type Deeds = ReturnType<typeof useDeeds>;
interface Shown { app: App; deeds: Deeds }

const kHeads = ["Instance", "State", "Health", "For", "Ports", "Version", "Change"];
/** Those that Mesos has other words for. */
const kStates: { [state: string]: string } = { staging: "starting", killing: "stopping" };

function stateOf({ state }: Instance): string {
  const word = state.replace(/^TASK_/, "").toLowerCase();
  return kStates[word] ?? word;
}

function Tools({ app, deeds }: Shown) {
  const change = (question: { title: string; verb: string; words: string; done: string }, method: string, path: string, body?: unknown) => {
    let force = false;
    const deed = async () => {
      await ask(method, `${path}${force ? "?force=true" : ""}`, body);
      return question.done;
    };
    deeds.ask({ ...question, deed, says: <><p>{question.words}</p><Force app={app} set={(wanted) => { force = wanted; }} /></> });
  };
  const scale = (event: SubmitEvent) => {
    event.preventDefault();
    const wanted = Number(new FormData(event.currentTarget as HTMLFormElement).get("instances"));
    const done = `It is to have ${count(wanted, "instance")}.`;
    const deed = async () => {
      await ask("PUT", pathOf(app.id), { instances: wanted });
      return done;
    };
    if (wanted >= app.instances && app.deployments.length === 0) return deeds.run(deed);
    const words = wanted < app.instances ? `${count(app.instances - wanted, "instance")} of ${app.instances} will end.` : `It will have ${count(wanted, "instance")}.`;
    change({ title: `Scale it to ${wanted}?`, verb: "Scale it", words, done }, "PUT", pathOf(app.id), { instances: wanted });
  };
  const restart = () => change({ title: "Restart it?", verb: "Restart it", words: "Every instance ends when the one that takes its place is well, as its upgrade strategy says.", done: "It is restarted." },
    "POST", pathOf(app.id, "/restart"));
  const suspend = () => change({ title: "Suspend it?", verb: "Suspend it", words: `All ${count(app.instances, "instance")} will end. Its definition stays, and scaling brings it back.`, done: "It is suspended." },
    "PUT", pathOf(app.id), { instances: 0 });
  return (
    <div class="tools">
      <form class="tools" onSubmit={scale}>
        <Field key={app.instances} label="Instances" name="instances" type="number" min={0} required value={String(app.instances)} />
        <button type="submit">Scale</button>
      </form>
      <button type="button" class="other" onClick={restart}>Restart …</button>
      {app.instances > 0 ? <button type="button" class="other" onClick={suspend}>Suspend …</button> : null}
    </div>
  );
}

function Health({ of: { healthCheckResults = [] }, checked }: { of: Instance; checked: boolean }) {
  if (!checked) return <>not checked</>;
  if (healthCheckResults.length === 0) return <>not known yet</>;
  const ill = healthCheckResults.find((each) => !each.alive);
  if (!ill) return <span class="state finished">healthy</span>;
  return <span class="state failed">unhealthy{ill.lastFailureCause ? <>: <Named>{ill.lastFailureCause}</Named></> : null}</span>;
}

function Instances({ app, deeds }: Shown) {
  const rows = app.tasks ?? [];
  if (rows.length === 0) return <p>{app.instances === 0 ? "It is suspended: scale it to have instances again." : "None of its instances runs yet."}</p>;
  const end = (instance: Instance) => deeds.ask({
    title: "End this instance?",
    verb: "End it",
    says: <p><code>{instance.id}</code> ends, and another one takes its place.</p>,
    deed: async () => {
      await ask("DELETE", pathOf(app.id, `/tasks/${encodeURIComponent(instance.id)}`));
      return "The instance ends.";
    },
  });
  return (
    <List label="All instances" heads={kHeads} rows={rows} keyOf={(row) => row.id} cells={(row) => [
      <TaskLink id={row.id} />, <span class={`state ${stateOf(row)}`}>{stateOf(row)}</span>, <Health of={row} checked={app.healthChecks.length > 0} />,
      since(row.startedAt ?? row.stagedAt), row.ports.join(", "), row.version >= (app.versionInfo?.lastConfigChangeAt ?? "") ? "newest" : <Moment at={row.version} />,
      <button type="button" class="other small" aria-label={`End … ${row.id}`} onClick={() => end(row)}>End …</button>]} />
  );
}

function Waits({ known }: { known: Known }) {
  const words = known.deployments.length > 0 ? [] : waitsOf(known.app.id, known);
  return words.length === 0 ? null : <ul class="reasons" aria-label="How it stands">{words.map((each) => <li key={each}><Said>{each}</Said></li>)}</ul>;
}

export function Service({ id }: { id: string }) {
  const seen = useShared(useMemo(() => serviceOf(id), [id])), deeds = useDeeds(), known = seen.value;
  return (
    <>
      <p><Link to="/services">All services</Link></p>
      <h1><Named>{id}</Named></h1>
      {deeds.shown}
      <Trouble of={seen.trouble} />
      {known && !seen.trouble ? (
        <>
          <p>{known.app.tasksRunning} of {count(known.app.instances, "instance")} {known.app.instances === 1 ? "runs" : "run"}{known.app.cmd ? <>: <code class="one"><Said>{known.app.cmd}</Said></code></> : null}</p>
          <Waits known={known} />
          <Tools app={known.app} deeds={deeds} />
          <Deployments of={known} deeds={deeds} />
          <section aria-labelledby="instances"><h2 id="instances">Instances</h2><Instances app={known.app} deeds={deeds} /></section>
          <Versions app={known.app} versions={known.versions} deeds={deeds} />
        </>
      ) : null}
    </>
  );
}
