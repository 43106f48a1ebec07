import type { App } from "../../net/types";

/** While a deployment is under way, the daemon refuses others of the same service that do not take its place. */
export function Force({ app, set }: { app: App; set: (force: boolean) => void }) {
  if (app.deployments.length === 0) return null;
  return <p><label class="check"><input type="checkbox" onChange={(event) => set(event.currentTarget.checked)} /> Take the place of the deployment under way</label></p>;
}
