// For a library that makes style elements and attributes of its own, which the page's policy forbids: what it writes becomes
// style sheets made by script, and properties, which are allowed.

class Sheet extends HTMLElement {
  private readonly sheet = new CSSStyleSheet();

  constructor() {
    super();
    Object.defineProperty(this, "textContent", { set: (text: string) => this.sheet.replaceSync(text) });
  }

  connectedCallback(): void {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.sheet];
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.sheet);
  }
}

/** From now on, for all of the page. Such a library takes the document that there is, whichever it is given. */
export function keepStylesStrict(): void {
  if (customElements.get("drover-sheet")) return;
  customElements.define("drover-sheet", Sheet);
  const make = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    if (name === "style") return make("drover-sheet");
    const made = make(name, options);
    if (name !== "span") return made;
    const set = made.setAttribute.bind(made);
    made.setAttribute = (attribute: string, value: string) => {
      if (attribute === "style") made.style.cssText = value;
      else set(attribute, value);
    };
    return made;
  };
}
