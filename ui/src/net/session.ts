// Who uses the page. A session is kept by the browser for this address and port alone: other than a cookie, no other server
// of the machine gets to see it.

import { ask } from "./api";
import { open } from "./socket";

const kName = "drover-session";

export function session(): string {
  return localStorage.getItem(kName) ?? "";
}

function keep(token: string): void {
  if (token) localStorage.setItem(kName, token);
  else localStorage.removeItem(kName);
}

export function headers(): Record<string, string> {
  return session() ? { Authorization: `Bearer ${session()}` } : {};
}

/** With a secret or a ticket. Throws what the daemon says against it. */
export async function logIn(secret: string): Promise<void> {
  keep("");
  const { token } = await ask<{ token: string }>("POST", "/v1/login", undefined, { Authorization: `Bearer ${secret}` });
  keep(token);
}

export async function logOut(): Promise<void> {
  await ask("POST", "/v1/logout", undefined, { ...headers(), "Drover-Session": session() });
  keep("");
}

/** Whether the daemon knows who this is, or takes those who show nothing for somebody. Asked in a way that is no error where it
 * does not. */
export function isKnown(): Promise<boolean> {
  return new Promise((then) => {
    const socket = open({ path: "/v1/whoami" }, {
      answered: (status) => {
        then(status !== 401);
        socket.close();
      },
      heard: () => undefined,
      ended: () => then(true), // whoever asks next hears why
    });
  });
}

/** What `drover ui` has written behind the address: nobody else sees it there, and it is good once. */
export async function takeTicket(): Promise<void> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return;
  history.replaceState(null, "", location.pathname);
  await logIn(ticket).catch(() => undefined);
}
