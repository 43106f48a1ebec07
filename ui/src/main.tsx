import { render } from "preact";
import { App } from "./app";
import { takeTicket } from "./net/session";

await takeTicket();
render(<App />, document.getElementById("page")!);
