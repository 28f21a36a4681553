// The connection to memd: made when it is first needed, and again after memd went away.
import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { dirname } from "node:path";
import {
  createMessageConnection,
  type CancellationToken,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";

// What decides which memory directory is meant (docs/protocol.md of memd, "Who calls").
const FORWARDED = [
  "MEMD_MEMORY_PATH",
  "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE",
  "CLAUDE_CODE_REMOTE_MEMORY_DIR",
  "MEMD_BASE_DIR",
  "CLAUDE_CONFIG_DIR",
  "MEMD_DISABLE",
  "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
  "CLAUDE_CODE_SIMPLE",
  "CLAUDE_CODE_REMOTE",
  "MEMD_EXTRA_GUIDELINES",
  "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES",
];

/** What memd refuses: its sentence, its kind, and a hint how to go on. */
export class Refusal extends Error {
  readonly kind: string;

  constructor(error: ResponseError<{ kind?: string; hint?: string } | undefined>) {
    super(error.data?.hint ? `${error.message} (${error.data.hint})` : error.message);
    this.kind = error.data?.kind ?? "";
  }
}

export type Listener = (method: string, params: any) => void;

export class Daemon {
  private connection?: Promise<MessageConnection>;
  private readonly listeners = new Set<Listener>();

  /** `topics` are the notifications that every new connection subscribes to. */
  constructor(
    private readonly memctl = "memctl",
    private readonly topics: string[] = [],
  ) {}

  /** Return a method's result. Throws a Refusal, or an Error where memd cannot be reached. */
  async request(method: string, params: object, token?: CancellationToken): Promise<any> {
    this.connection ??= this.connect();
    try {
      const connection = await this.connection;
      return await (token
        ? connection.sendRequest(method, params, token)
        : connection.sendRequest(method, params));
    } catch (error) {
      throw error instanceof ResponseError ? new Refusal(error) : error;
    }
  }

  /** Have each notification told to a listener, until what is returned is called. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Let go of the connection; the next request makes a new one. */
  close(): void {
    void this.connection?.then((connection) => connection.dispose()).catch(() => undefined);
    this.connection = undefined;
  }

  private async connect(): Promise<MessageConnection> {
    try {
      const socket = await this.open();
      const connection = createMessageConnection(
        new StreamMessageReader(socket),
        new StreamMessageWriter(socket),
      );
      connection.onNotification((method, params) => {
        for (const listener of this.listeners) listener(method, params);
      });
      connection.onClose(() => {
        connection.dispose();
        this.connection = undefined;
      });
      connection.onDispose(() => socket.destroy());
      connection.onError(() => undefined); // a close follows
      connection.listen();
      const environment = Object.fromEntries(
        FORWARDED.filter((name) => name in process.env).map((name) => [name, process.env[name]]),
      );
      await connection.sendRequest("hello", { client: "vscode", environment });
      if (this.topics.length) await connection.sendRequest("subscribe", { topics: this.topics });
      return connection;
    } catch (error) {
      this.connection = undefined;
      throw error;
    }
  }

  private async open(): Promise<Socket> {
    const path = process.env.MEMD_SOCKET ?? (await this.run("config", "--socket-path"));
    return reach(path).catch(async () => {
      await this.run("--quiet", "status"); // starts memd where none runs
      return reach(path);
    });
  }

  private run(...words: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      execFile(this.memctl, words, (error, output, said) => {
        if (error) reject(new Error(said.trim() || `${this.memctl} cannot be run: ${error.message}`));
        else resolve(output.trim());
      });
    });
  }
}

function reach(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (statSync(dirname(path)).mode & 0o077) throw new Error(`others can reach ${path}`);
    const socket = createConnection(path, () => resolve(socket));
    socket.once("error", reject);
  });
}
