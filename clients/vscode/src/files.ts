// Memories as files of the editor: memd:/PATH?cwd=…, and memd:/PATH?cwd=…&at=CHANGE as it was.
import * as vscode from "vscode";
import { Refusal } from "./daemon";
import type { Memories } from "./memories";

export const SCHEME = "memd";
const NOTED_MS = 500; // after which the editor has noted the time of what it saved

/** Return the address of a memory; with `at` as that change left it, "" for an empty file. */
export function address(cwd: string, path: string, at?: string): vscode.Uri {
  const query = new URLSearchParams(at === undefined ? { cwd } : { cwd, at });
  return vscode.Uri.from({ scheme: SCHEME, path: `/${path}`, query: query.toString() });
}

export function parts(uri: vscode.Uri): { cwd: string; path: string; at: string | null } {
  const query = new URLSearchParams(uri.query);
  return { cwd: query.get("cwd") ?? "", path: uri.path.slice(1), at: query.get("at") };
}

interface Loaded extends vscode.FileStat {
  content: string;
  hash: string;
}

export class MemoryFiles implements vscode.FileSystemProvider {
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;
  // What the editor was last given: a save is told to memd as a change of that.
  private readonly hashes = new Map<string, string>();
  private readonly newer = new Map<string, number>();

  constructor(private readonly of: (cwd: string) => Memories) {}

  /** Have the editor read its open memories again. */
  refresh(): void {
    const open = vscode.workspace.textDocuments.filter((document) => document.uri.scheme === SCHEME);
    this.changed.fire(open.map(({ uri }) => ({ type: vscode.FileChangeType.Changed, uri })));
  }

  stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    return this.load(uri);
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const { content, hash } = await this.load(uri);
    this.hashes.set(uri.toString(), hash);
    return Buffer.from(content);
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    const { cwd, path, at } = parts(uri);
    if (at !== null) throw vscode.FileSystemError.NoPermissions(uri);
    const base = this.hashes.get(uri.toString()) ?? "";
    const { status, hash } = await this.of(cwd).write(path, Buffer.from(content).toString(), base);
    if (status === "merged") setTimeout(() => this.reread(uri), NOTED_MS);
    else this.hashes.set(uri.toString(), hash);
  }

  /** Have the editor read a file again that is not what it saved: a new time says so. */
  private reread(uri: vscode.Uri): void {
    this.newer.set(uri.toString(), (this.newer.get(uri.toString()) ?? 0) + 1);
    this.changed.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  async delete(uri: vscode.Uri): Promise<void> {
    const { cwd, path } = parts(uri);
    await this.of(cwd).forget(path);
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined); // memd tells of every change
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  private async load(uri: vscode.Uri): Promise<Loaded> {
    const { cwd, path, at } = parts(uri);
    const file = { type: vscode.FileType.File, ctime: 0 };
    if (at !== null) {
      const content = await this.of(cwd).textAt(path, at);
      const permissions = vscode.FilePermission.Readonly;
      return { ...file, mtime: 0, size: Buffer.byteLength(content), content, hash: "", permissions };
    }
    try {
      const memory = await this.of(cwd).read(path);
      const mtime = Date.parse(memory.mtime) + (this.newer.get(uri.toString()) ?? 0);
      return { ...file, ...memory, type: file.type, mtime };
    } catch (error) {
      if (error instanceof Refusal && error.kind === "not_found") {
        throw vscode.FileSystemError.FileNotFound(uri);
      }
      throw error;
    }
  }
}
