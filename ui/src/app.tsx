import { useEffect, useState } from "preact/hooks";
import { onStranger } from "./net/api";
import { begin, end, watchDoor } from "./net/live";
import { Link, Router, usePath } from "./parts/route";
import { Login } from "./views/login";
import { Machine } from "./views/machine";
import { Task } from "./views/task";
import { Tasks } from "./views/tasks";

const kViews = [
  { path: "/", title: "Machine", view: Machine },
  { path: "/tasks", title: "Tasks", view: Tasks },
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
  const task = /^\/tasks\/([^/]+)$/.exec(path)?.[1];
  const found = kViews.find((view) => view.path === path);
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
      <main id="view" tabIndex={-1}>{task ? <Task key={task} id={task} /> : found ? <found.view /> : <p>There is no such page here. <Link to="/">To the machine</Link></p>}</main>
    </>
  );
}

export function App() {
  const [known, setKnown] = useState(true);
  onStranger(() => setKnown(false));
  return <Router>{known ? <Shell /> : <Login done={() => setKnown(true)} />}</Router>;
}
