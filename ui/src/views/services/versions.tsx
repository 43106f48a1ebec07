import { useState } from "preact/hooks";
import type { Refusal } from "../../net/api";
import { pathOf } from "../../net/services";
import type { App } from "../../net/types";
import { ask, get } from "../../net/api";
import { Changes, differences } from "../../parts/changes";
import { List } from "../../parts/list";
import { Moment } from "../../parts/moment";
import { Trouble } from "../../parts/trouble";
import { Force } from "./force";
import type { Deeds } from "./service";

interface Shown { app: App; versions: string[]; deeds: Deeds }

/** What an app has only in answers, and what is about a definition rather than in it. */
const kApart = new Set(["tasks", "tasksStaged", "tasksRunning", "tasksHealthy", "tasksUnhealthy", "deployments", "version", "versionInfo", "lastTaskFailure"]);

export function Versions({ app, versions, deeds }: Shown) {
  const [trouble, setTrouble] = useState<Refusal>();
  const rollBack = async (version: string) => {
    setTrouble(undefined);
    try {
      const then = await get<App>(pathOf(app.id, `/versions/${encodeURIComponent(version)}`));
      let force = false;
      deeds.ask({
        title: "Roll back to this version?",
        verb: "Roll back",
        says: (
          <>
            <p>The service becomes what it was on <Moment at={version} />. Its instances end as those of that version become well.</p>
            <Changes of={differences(app, then, kApart)} heads={["Now", "Then"]} />
            <Force app={app} set={(wanted) => { force = wanted; }} />
          </>
        ),
        deed: async () => {
          await ask("PUT", pathOf(app.id, force ? "?force=true" : ""), { version });
          return "It goes back to that version.";
        },
      });
    } catch (error) {
      setTrouble(error as Refusal);
    }
  };
  return (
    <section aria-labelledby="versions">
      <h2 id="versions">Versions</h2>
      <Trouble of={trouble} />
      <List label="All versions" heads={["Defined", "Change", "Version"]} rows={versions} keyOf={(version) => version} cells={(version) => [
        <Moment at={version} />,
        version === app.version ? "as it is now" : <button type="button" class="other small" aria-label={`Roll back … to ${version}`} onClick={() => void rollBack(version)}>Roll back …</button>,
        <code>{version}</code>]} />
    </section>
  );
}
