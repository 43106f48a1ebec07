/** What somebody else has written, where it may say anything: characters that one does not see, and that turn the order of
 * others, are shown as their numbers. */
export function Said({ children }: { children: string }) {
  return <bdi>{printable(children)}</bdi>;
}

/** The same where people have called something so: no longer than its place. All of it is its title. */
export function Named({ children }: { children: string }) {
  const text = printable(children);
  return <bdi class="named" title={text}>{text}</bdi>;
}

export function printable(text: string): string {
  return text.replace(/[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (letter) => (/\s/.test(letter) ? " " : `\\u{${letter.charCodeAt(0).toString(16)}}`));
}
