import { Named } from "./named";
import { Link } from "./route";

/** To a task's page. Ids of runs may end with any words: so they stay encoded in the address that the router has decoded. */
export function TaskLink({ id }: { id: string }) {
  const encoded = encodeURIComponent(id).replaceAll("%3A", ":");
  return <Link to={`/tasks/${encoded.replaceAll("%", "%25")}`}><Named>{id}</Named></Link>;
}
