import { Named } from "./named";
import { Link } from "./route";

export const ServiceLink = ({ id }: { id: string }) => <Link to={`/services${id}`}><Named>{id}</Named></Link>;
export const JobLink = ({ name }: { name: string }) => <Link to={`/schedules/${name}`}><Named>{name}</Named></Link>;

/** To a task's page. Ids of runs may end with any words: so they stay encoded in the address that the router has decoded. */
export function TaskLink({ id }: { id: string }) {
  const encoded = encodeURIComponent(id).replaceAll("%3A", ":");
  return <Link to={`/tasks/${encoded.replaceAll("%", "%25")}`}><Named>{id}</Named></Link>;
}
