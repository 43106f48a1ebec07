// Which view is shown, by the address.

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

export const kRoot = "/ui";

const Path = createContext("/");
export const usePath = () => useContext(Path);

function here(): string {
  let path = location.pathname;
  try {
    path = decodeURI(path);
  } catch {
    // as it stands
  }
  return path.startsWith(kRoot) ? path.slice(kRoot.length) || "/" : "/";
}

export function go(path: string): void {
  history.pushState(null, "", kRoot + path);
  dispatchEvent(new PopStateEvent("popstate"));
}

export function Router({ children }: { children: ComponentChildren }) {
  const [path, setPath] = useState(here);
  useEffect(() => {
    const moved = () => setPath(here());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  return <Path.Provider value={path}>{children}</Path.Provider>;
}

/** A link to another view, which a click with a key opens elsewhere as any link. */
export function Link({ to, class: name, exact, children }: { to: string; class?: string; exact?: boolean; children: ComponentChildren }) {
  const path = usePath();
  const current = path === to || (!exact && to !== "/" && path.startsWith(`${to}/`));
  const click = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return <a class={name} href={kRoot + to} aria-current={current ? "page" : undefined} onClick={click}>{children}</a>;
}
