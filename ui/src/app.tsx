import { useEffect, useState } from "preact/hooks";
import { onStranger } from "./net/api";
import { begin, end, watchDoor } from "./net/live";
import { Later } from "./parts/later";
import { Link, Router, usePath } from "./parts/route";
import { Login } from "./views/login";
import { Machine } from "./views/machine";
import { Task } from "./views/task/task";
import { Tasks } from "./views/tasks";

const services = () => import("./views/services/services").then(({ Services }) => Services);
const schedules = () => import("./views/schedules/schedules").then(({ Schedules }) => Schedules);
const queues = () => import("./views/queues/queues").then(({ Queues }) => Queues);
const settings = () => import("./views/settings").then(({ Settings }) => Settings);
const submit = () => import("./views/submit/submit").then(({ Submit }) => Submit);

const kViews = [
  { path: "/", title: "Machine", view: Machine },
  { path: "/tasks", title: "Tasks", view: Tasks },
  { path: "/submit", title: "Submit", view: () => <Later view={submit} /> },
  { path: "/services", title: "Services", below: true, view: () => <Later view={services} /> },
  { path: "/schedules", title: "Schedules", below: true, view: () => <Later view={schedules} /> },
  { path: "/queues", title: "Queues", view: () => <Later view={queues} /> },
  { path: "/settings", title: "Settings", view: () => <Later view={settings} /> },
];

function Shell() {
  const path = usePath();
  const [heard, setHeard] = useState(true);
  useEffect(() => {
    begin();
    const leave = watchDoor(setHeard);
    return () => {
      leave();
      end();
    };
  }, []);
  const [, task, part] = /^\/tasks\/([^/]+)(?:\/([a-z]+))?$/.exec(path) ?? [];
  const found = kViews.find((view) => view.path === path || (view.below && path.startsWith(`${view.path}/`)));
  useEffect(() => {
    document.title = task || found ? `${task ?? found!.title} · Drover` : "Drover";
  }, [path]);
  return (
    <>
      <a class="skip" href="#view">Skip to the view</a>
      <header>
        <Link to="/" class="name">Drover</Link>
        <nav aria-label="Views">{kViews.map(({ path: to, title }) => <Link key={to} to={to}>{title}</Link>)}</nav>
        {heard ? null : <p class="away" role="status">The daemon does not answer. What you see is from before.</p>}
      </header>
      <main id="view" tabIndex={-1}>{task ? <Task key={task} id={task} part={part ?? ""} /> : found ? <found.view /> : <p>There is no such page here. <Link to="/">To the machine</Link></p>}</main>
    </>
  );
}

export function App({ known: first }: { known: boolean }) {
  const [known, setKnown] = useState(first);
  onStranger(() => setKnown(false));
  return <Router>{known ? <Shell /> : <Login done={() => setKnown(true)} />}</Router>;
}
