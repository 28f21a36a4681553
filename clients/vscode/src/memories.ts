// What can be done with the memories of one project. Nothing here knows the editor.
import type { CancellationToken } from "vscode-jsonrpc/node";
import { type Daemon, Refusal } from "./daemon";

export const TYPES = ["user", "feedback", "project", "reference"] as const;
export type MemoryType = (typeof TYPES)[number];

export interface Memory {
  path: string;
  name: string;
  description: string;
  type: MemoryType | null;
  mtime: string;
  age: string;
  size: number;
}

export interface MemoryText extends Memory {
  content: string;
  hash: string;
}

export interface Hit {
  path: string;
  description: string;
  snippet: string;
}

export interface Change {
  id: string;
  at: string;
  actor: string;
  client: string;
  reason: string;
  files: { path: string; action: string }[];
}

export interface Surfaced {
  memory: Memory;
  at: string;
  session: string;
}

export interface Suggestion {
  id: string;
  text: string;
  type: string;
  origin: string;
}

/** `status` is "merged" where the file has more than was written. */
export interface Written {
  path: string;
  hash: string;
  status: string;
}

/** A file of a change: the change that left it as it was before, "" where it was not there. */
export interface Versions {
  path: string;
  before: string;
  after: string;
}

const AT_ONCE = 16; // requests in flight; memd takes 32

export class Memories {
  constructor(
    private readonly daemon: Daemon,
    readonly cwd: string,
  ) {}

  private ask(method: string, params: object = {}, token?: CancellationToken): Promise<any> {
    return this.daemon.request(method, { cwd: this.cwd, ...params }, token);
  }

  async list(): Promise<Memory[]> {
    const memories: Memory[] = [];
    let after: string | undefined;
    do {
      const page = await this.ask("memory.list", { after });
      memories.push(...page.memories);
      after = page.next ?? undefined;
    } while (after);
    return memories;
  }

  async search(query: string): Promise<Hit[]> {
    return query.trim() ? (await this.ask("memory.search", { query })).hits : [];
  }

  /** Return a memory, or as a change left it. */
  read(path: string, at?: string): Promise<MemoryText> {
    return this.ask("memory.read", at ? { path, at } : { path });
  }

  /** Return a memory's text as a change left it, "" where it was not there then. */
  async textAt(path: string, at: string): Promise<string> {
    if (!at) return "";
    try {
      return (await this.read(path, at)).content;
    } catch (error) {
      if (error instanceof Refusal && ["not_found", "version_not_found"].includes(error.kind)) return "";
      throw error;
    }
  }

  /** Write a whole memory over the one that had this hash; what was written since is merged. */
  write(path: string, content: string, base: string): Promise<Written> {
    return this.ask("memory.write", { path, content, base_hash: base });
  }

  /** Save a text as a new memory and return its path. Throws where its name is taken. */
  async save(text: string, description: string, type: MemoryType): Promise<string> {
    const name = slug(description);
    const parts = { path: `${name}.md`, name, description, type };
    const saved = await this.ask("memory.write", { ...parts, body: `${text}\n`, base_hash: "" });
    return saved.path;
  }

  async forget(path: string): Promise<string> {
    return (await this.ask("memory.delete", { path })).change;
  }

  /** Return the newest changes of the project, or of one memory. */
  async history(path = "", limit = 100): Promise<Change[]> {
    return (await this.ask("memory.history", { path, limit })).changes;
  }

  /** Return for each memory of a change where its text before and after can be read. */
  versions(change: Change): Promise<Versions[]> {
    const files = change.files.filter((file) => !file.path.endsWith("MEMORY.md"));
    return Promise.all(
      files.map(async ({ path }) => {
        const earlier = await this.ask("memory.history", { path, before: change.id, limit: 1 });
        return { path, before: earlier.changes[0]?.id ?? "", after: change.id };
      }),
    );
  }

  /** Take a change back; return what happened to each file and which were left alone. */
  undo(change: string): Promise<{ change: string; files: Change["files"]; conflicts: string[] }> {
    return this.ask("memory.undo", { change });
  }

  /** Return the memories that went into conversations, the latest first. */
  async surfaced(): Promise<Surfaced[]> {
    const memories = await this.list();
    const found: Surfaced[] = [];
    for (let start = 0; start < memories.length; start += AT_ONCE) {
      await Promise.all(
        memories.slice(start, start + AT_ONCE).map(async (memory) => {
          const { surfaced } = await this.ask("memory.why", { path: memory.path });
          if (surfaced) found.push({ memory, ...surfaced });
        }),
      );
    }
    return found.sort((a, b) => b.at.localeCompare(a.at));
  }

  async suggestions(): Promise<Suggestion[]> {
    return (await this.ask("review.list", { kind: "suggestion" })).items;
  }

  /** Make a memory of a suggestion and return its path. */
  async accept(suggestion: string): Promise<string> {
    return (await this.ask("review.decide", { id: suggestion, choice: "accept" })).path;
  }

  async dismiss(suggestion: string): Promise<void> {
    await this.ask("review.decide", { id: suggestion, choice: "dismiss" });
  }

  /**
   * Dream now and return the report as Markdown; `progress` gets words about each step, where the
   * daemon is subscribed to job.progress. A token that is cancelled ends the dream unfinished.
   */
  async dream(progress: (words: string) => void, token?: CancellationToken): Promise<string> {
    const { job, status, reason } = await this.ask("dream", { force: true });
    if (!job) return `The dream was ${status}: ${reason ?? "no reason was given"}.`;
    const stop = this.daemon.listen((method, params) => {
      if (method === "job.progress" && params.job === job) progress(phase(params));
    });
    token?.onCancellationRequested(() => void this.daemon.request("job.cancel", { job }));
    try {
      await this.daemon.request("job.wait", { job });
    } finally {
      stop();
    }
    return (await this.ask("dream.status")).markdown;
  }
}

function phase(params: { phase?: string; turn?: number }): string {
  return [params.phase, params.turn && `turn ${params.turn}`].filter(Boolean).join(", ");
}

/** Return a file name in kebab case for a description; the time where it has no plain letters. */
export function slug(description: string, now = new Date()): string {
  const words = description.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-/, "");
  const time = now.toISOString().replace(/\D/g, "").slice(0, 14);
  return words.slice(0, 60).replace(/-$/, "") || `note-${time}`;
}

/** Return memories in groups by their type, those of no type last; empty groups are left out. */
export function byType<M extends Pick<Memory, "type">>(memories: M[]): [string, M[]][] {
  const groups: [string, M[]][] = [...TYPES, null].map((type) => [
    type ?? "other",
    memories.filter((memory) => memory.type === type),
  ]);
  return groups.filter(([, members]) => members.length > 0);
}

/** Return a change in one line: who made it, and what became of which files. */
export function summary(change: Change): string {
  const who = change.client ? `${change.actor} (${change.client})` : change.actor;
  return `${who}: ${change.files.map((file) => `${file.action} ${file.path}`).join(", ")}`;
}
