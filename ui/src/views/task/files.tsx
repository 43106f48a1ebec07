// The task's sandbox: folders, a look into files, and files to take along.

import { useEffect, useState } from "preact/hooks";
import { get, type Refusal } from "../../net/api";
import { headers } from "../../net/session";
import { List } from "../../parts/list";
import { Trouble } from "../../parts/trouble";
import { bytes } from "../../parts/words";

interface File { name: string; kind: string; size: number; modified_at: string; mode: string }
interface Piece { data: string; encoding: string; length: number; offset: number; size: number }

const kLook = 65_536; // bytes of a file that are shown
const kMostTaken = 2 ** 30; // a browser holds it whole until it is saved

function joined(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

/** The browser can show nobody's session for a link: it is fetched, and then handed over. */
async function take(id: string, path: string): Promise<void> {
  const answer = await fetch(`/v1/tasks/${id}/files/download?path=${encodeURIComponent(path)}`, { headers: headers(), credentials: "omit" });
  if (!answer.ok) throw new Error(`${path} cannot be taken: the daemon answered with ${answer.status}`);
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = path.slice(path.lastIndexOf("/") + 1);
  link.click();
  URL.revokeObjectURL(address);
}

function Look({ id, path, done }: { id: string; path: string; done: () => void }) {
  const [piece, setPiece] = useState<Piece>();
  const [trouble, setTrouble] = useState<Refusal>();
  useEffect(() => {
    get<Piece>(`/v1/tasks/${id}/files/read?path=${encodeURIComponent(path)}&length=${kLook}`).then(setPiece, setTrouble);
  }, [id, path]);
  return (
    <section aria-label={path}>
      <p class="tools"><strong>{path}</strong> <button type="button" onClick={done}>Back to the folder</button></p>
      <Trouble of={trouble} />
      {piece === undefined ? null : piece.encoding === "utf-8" ? <pre class="output" tabIndex={0}>{piece.data}</pre> : <p>It is not text.</p>}
      {piece && piece.size > piece.length ? <p>Its first {bytes(piece.length)} of {bytes(piece.size)}.</p> : null}
    </section>
  );
}

export function Files({ id }: { id: string }) {
  const [folder, setFolder] = useState("/");
  const [shown, setShown] = useState<string>();
  const [files, setFiles] = useState<File[]>();
  const [trouble, setTrouble] = useState<Error>();
  useEffect(() => {
    let current = true;
    setFiles(undefined);
    get<{ files: File[] }>(`/v1/tasks/${id}/files/browse?path=${encodeURIComponent(folder)}`).then(
      (answer) => current && (setFiles(answer.files), setTrouble(undefined)), (error) => current && setTrouble(error));
    return () => {
      current = false;
    };
  }, [id, folder]);
  if (shown) return <Look id={id} path={shown} done={() => setShown(undefined)} />;
  const enter = (file: File) => file.kind === "directory"
    ? <button type="button" class="plain" onClick={() => setFolder(joined(folder, file.name))}>{file.name}/</button>
    : file.kind === "file" ? <button type="button" class="plain" onClick={() => setShown(joined(folder, file.name))}>{file.name}</button> : file.name;
  return (
    <section aria-label="Files">
      <p class="tools"><strong>{folder}</strong> {folder === "/" ? null : <button type="button" onClick={() => setFolder(folder.slice(0, folder.lastIndexOf("/")) || "/")}>Up</button>}</p>
      <Trouble of={trouble} />
      {files?.length === 0 ? <p>There is nothing in this folder.</p> : null}
      {files && files.length > 0 ? (
        <List label={`Files in ${folder}`} heads={["Name", "Size", "Changed", "Mode", "To take along"]} rows={files} keyOf={(file) => file.name} cells={(file) => [
          enter(file), file.kind === "file" ? bytes(file.size) : file.kind, new Date(file.modified_at).toLocaleString(), <code>{file.mode}</code>,
          file.kind === "file" && file.size <= kMostTaken ? <button type="button" class="plain" aria-label={`Take ${file.name}`} onClick={() => take(id, joined(folder, file.name)).catch(setTrouble)}>Take</button> : null]} />
      ) : null}
    </section>
  );
}
