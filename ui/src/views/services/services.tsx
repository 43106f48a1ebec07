import { services, type Services as Known } from "../../net/services";
import { useShared } from "../../net/state";
import type { App } from "../../net/types";
import { useDeeds } from "../../parts/deeds";
import { ServiceLink } from "../../parts/links";
import { List } from "../../parts/list";
import { Named } from "../../parts/named";
import { usePath } from "../../parts/route";
import { Trouble } from "../../parts/trouble";
import { count } from "../../parts/words";
import { Deployments } from "./deployments";
import { Service } from "./service";

const kPath = "/services";
const kHeads = ["Service", "Up", "Health", "Now"];

/** "2 healthy, 1 unhealthy"; of one without checks nobody knows. */
function Health({ of: { healthChecks, tasksHealthy, tasksUnhealthy } }: { of: App }) {
  if (healthChecks.length === 0) return <>not checked</>;
  return <span class={`state ${tasksUnhealthy > 0 ? "failed" : "finished"}`}>{tasksHealthy} healthy{tasksUnhealthy > 0 ? `, ${tasksUnhealthy} unhealthy` : ""}</span>;
}

function standing(app: App, { queue }: Known): string {
  const waits = queue.find((each) => each.app.id === app.id)?.processedOffersSummary.reasons ?? [];
  if (waits.length > 0) return `waits: ${waits.join("; ")}`;
  if (app.deployments.length > 0) return "is deployed";
  return app.instances === 0 ? "suspended" : "";
}

function All() {
  const seen = useShared(services), deeds = useDeeds(), known = seen.value;
  const under = known?.deployments.length ?? 0;
  return (
    <>
      <h1>{known ? `${count(known.apps.length, "service")}, ${count(under, "deployment")} under way` : "Services"}</h1>
      {deeds.shown}
      <Trouble of={seen.trouble} />
      {known ? <Deployments of={known} deeds={deeds} /> : null}
      {known && known.apps.length === 0 ? <p>There are no services. <code>drover init app web.yaml</code> writes one to start from, and <code>drover apply web.yaml</code> runs it.</p> : null}
      {known && known.apps.length > 0 ? (
        <List label="Services" heads={kHeads} rows={known.apps} keyOf={(app) => app.id} cells={(app) => [
          <ServiceLink id={app.id} />, `${app.tasksRunning} of ${app.instances}`, <Health of={app} />, <Named>{standing(app, known)}</Named>]} />
      ) : null}
    </>
  );
}

export function Services() {
  const id = usePath().slice(kPath.length).replace(/\/$/, "");
  return id ? <Service key={id} id={id} /> : <All />;
}
