import { logOut, session } from "../net/session";
import { caller } from "../net/sharing";
import { useShared } from "../net/state";
import { useDeeds } from "../parts/deeds";
import { Moment } from "../parts/moment";
import { Named } from "../parts/named";
import { kRoot } from "../parts/route";
import { Trouble } from "../parts/trouble";

/** "session.<user>.<seconds>.<code>" */
function until(): Date | undefined {
  const seconds = Number(session().split(".").at(-2));
  return seconds > 0 ? new Date(seconds * 1000) : undefined;
}

const kPages = [
  ["quickstart.md", "the first steps"], ["cli.md", "all commands"], ["api.md", "the HTTP API, and who may come in"], ["services.md", "services and deployments"],
  ["schedules.md", "jobs that run by a schedule"], ["placement.md", "queues, guarantees and quotas"], ["troubleshooting.md", "what to do when something fails"],
] as const;

export function Settings() {
  const who = useShared(caller), deeds = useDeeds(), over = until();
  const leave = () => deeds.run(async () => {
    await logOut();
    location.replace(kRoot); // nothing of what was seen stays in memory
    return "";
  });
  return (
    <>
      <h1>Settings</h1>
      {deeds.shown}
      <Trouble of={who.trouble} />
      <section aria-labelledby="who">
        <h2 id="who">Who you are</h2>
        {who.value ? (
          <dl class="facts">
            <dt>User</dt><dd><Named>{who.value.name}</Named>{who.value.root ? ", who may do all" : ""}</dd>
            <dt>Uid</dt><dd>{who.value.uid}</dd>
            <dt>Session</dt><dd>{over ? <>until <Moment at={over} />, in this browser alone</> : "none: the way here says who you are"}</dd>
          </dl>
        ) : null}
        <p class="tools"><button type="button" onClick={leave}>Log out</button></p>
      </section>
      <section aria-labelledby="tokens">
        <h2 id="tokens">Tokens</h2>
        <p>A token lets programs, and the command line on other machines, in over TCP. They stand in the daemon's credentials file, one <code>user:secret</code> a line; root gives each user one.</p>
        <dl class="commands">
          <dt>See them, or write a new line (root)</dt><dd><code>sudo cat /var/lib/drover/credentials</code></dd>
          <dt>Make a secret for a line</dt><dd><code>openssl rand -hex 24</code></dd>
          <dt>Use one from anywhere</dt><dd><code>DROVER_HOST={location.origin} DROVER_TOKEN=SECRET drover gpus</code></dd>
          <dt>Open this page on the machine itself, without a token</dt><dd><code>drover ui</code></dd>
        </dl>
      </section>
      <section aria-labelledby="pages">
        <h2 id="pages">More about it</h2>
        <p>These pages are in the folder <code>docs</code> of Drover. <code>drover help COMMAND</code> has much of it too.</p>
        <ul>{kPages.map(([page, about]) => <li key={page}><code>{page}</code>: {about}</li>)}</ul>
      </section>
    </>
  );
}
