import { render } from "preact";
import { App } from "./app";
import { isKnown, takeTicket } from "./net/session";

await takeTicket();
render(<App known={await isKnown()} />, document.getElementById("page")!);
