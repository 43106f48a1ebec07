import { waitsOf, type Services } from "../../net/services";
import type { Deployment } from "../../net/types";
import { ask } from "../../net/api";
import type { useDeeds } from "../../parts/deeds";
import { ServiceLink } from "../../parts/links";
import { Named, Said } from "../../parts/named";
import { since } from "../../parts/words";

interface Shown { of: Services; deeds: ReturnType<typeof useDeeds> }

/** "scale" of "ScaleApplication". */
const word = (action: string) => action.replace(/Application$/, "").toLowerCase();

function waits({ currentActions }: Deployment, known: Services): [string, string[]][] {
  return currentActions.map(({ app, readinessCheckResults }) => {
    const unready = readinessCheckResults.filter((each) => !each.ready).map((each) => `${each.taskId} is not ready yet (${each.name})`);
    return [app, [...waitsOf(app, known), ...unready]];
  });
}

export function Deployments({ of: known, deeds }: Shown) {
  if (known.deployments.length === 0) return null;
  const cancel = (deployment: Deployment) => {
    let force = false;
    deeds.ask({
      title: "Take the deployment back?",
      verb: "Take it back",
      says: (
        <>
          <p>Its services become again what they were before it. Instances of the new version end.</p>
          <ul class="names">{deployment.affectedApps.map((app) => <li key={app}><Named>{app}</Named></li>)}</ul>
          <p><label class="check"><input type="checkbox" onChange={(event) => { force = event.currentTarget.checked; }} /> Give it up where it stands instead</label></p>
        </>
      ),
      deed: async () => {
        await ask("DELETE", `/v2/deployments/${encodeURIComponent(deployment.id)}${force ? "?force=true" : ""}`);
        return force ? "The deployment is given up where it stood." : "The deployment is taken back.";
      },
    });
  };
  return (
    <section aria-labelledby="deployments">
      <h2 id="deployments">Under way</h2>
      <ul class="cards">
        {known.deployments.map((each) => (
          <li key={each.id} class="card used">
            <p class="standing">
              Step {each.currentStep} of {each.totalSteps}, for {since(each.version)}: {each.currentActions.map(({ action, app }) => <span key={app}>{word(action)} <ServiceLink id={app} /> </span>)}
            </p>
            <ul class="reasons" aria-label="What it waits for">
              {waits(each, known).flatMap(([app, words]) => words.map((reason) => <li key={app + reason}><Said>{each.currentActions.length > 1 ? `${app}: ${reason}` : reason}</Said></li>))}
            </ul>
            <p class="tools"><button type="button" class="other" aria-label={`Take it back … ${each.affectedApps.join(", ")}`} onClick={() => cancel(each)}>Take it back …</button></p>
          </li>
        ))}
      </ul>
    </section>
  );
}
