/** What people have called something: text, whatever they wrote, and no longer than its place. All of it is its title. */
export function Named({ children }: { children: string }) {
  return <bdi class="named" title={children}>{children}</bdi>;
}
