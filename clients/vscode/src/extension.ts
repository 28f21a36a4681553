// What the editor calls: views, commands and files, put together. Each command's work is done by
// memories.ts; here is only what the person sees of it.
import * as vscode from "vscode";
import { Daemon } from "./daemon";
import { address, MemoryFiles, parts, SCHEME } from "./files";
import { type Change, type Hit, Memories, type MemoryType, summary, TYPES } from "./memories";
import { type Line, Lines, memoryLines, suggestionLines, surfacedLines } from "./trees";

const TOPICS = ["memory.changed", "memory.saved", "job.progress"];
const WAIT_MS = 300; // one refresh for changes that follow each other
const UNDO: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("discard"), tooltip: "Undo" };

export function activate(context: vscode.ExtensionContext): void {
  const memctl = vscode.workspace.getConfiguration("memd").get<string>("memctl", "memctl");
  const daemon = new Daemon(memctl, TOPICS);
  const of = (cwd: string) => new Memories(daemon, cwd);
  const files = new MemoryFiles(of);
  const views = {
    "memd.memories": new Lines(() => memoryLines(here(of))),
    "memd.surfaced": new Lines(() => surfacedLines(here(of))),
    "memd.suggestions": new Lines(() => suggestionLines(here(of))),
  };
  const refresh = () => {
    Object.values(views).forEach((view) => view.refresh());
    files.refresh();
  };
  let timer: NodeJS.Timeout | undefined;
  const stop = daemon.listen((method) => {
    if (!method.startsWith("memory.")) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, WAIT_MS);
  });

  const commands: Record<string, (line?: Line) => Promise<unknown>> = {
    "memd.refresh": async () => refresh(),
    "memd.search": () => search(here(of)),
    "memd.saveSelection": () => saveSelection(here(of)),
    "memd.history": (line) => history(here(of), line?.memory?.path ?? openPath()),
    "memd.dream": () => dream(here(of)),
    "memd.forget": async (line) => {
      const change = await here(of).forget(line!.memory!.path);
      await offerUndo(here(of), `Forgot ${line!.memory!.path}.`, change);
    },
    "memd.accept": async (line) => {
      await open(here(of).cwd, await here(of).accept(line!.suggestion!.id));
      refresh();
    },
    "memd.dismiss": async (line) => {
      await here(of).dismiss(line!.suggestion!.id);
      refresh();
    },
  };
  context.subscriptions.push(
    { dispose: () => (stop(), clearTimeout(timer), daemon.close()) },
    vscode.workspace.registerFileSystemProvider(SCHEME, files, { isCaseSensitive: true }),
    vscode.workspace.onDidChangeWorkspaceFolders(refresh),
    ...Object.entries(views).map(([id, view]) => vscode.window.registerTreeDataProvider(id, view)),
    ...Object.entries(commands).map(([id, run]) => vscode.commands.registerCommand(id, shown(run))),
  );
}

/** Return the memories of the folder that the person works in. */
function here(of: (cwd: string) => Memories): Memories {
  const uri = vscode.window.activeTextEditor?.document.uri;
  if (uri?.scheme === SCHEME) return of(parts(uri).cwd);
  const folder = (uri && vscode.workspace.getWorkspaceFolder(uri)) ?? vscode.workspace.workspaceFolders?.[0];
  if (!folder) throw new Error("Open a folder first: memories belong to a project.");
  return of(folder.uri.fsPath);
}

function openPath(): string {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri?.scheme === SCHEME ? parts(uri).path : "";
}

function open(cwd: string, path: string): Thenable<unknown> {
  return vscode.commands.executeCommand("vscode.open", address(cwd, path));
}

/** Show what goes wrong in a command as a message, and not as a fault of the editor. */
function shown<A extends unknown[]>(run: (...given: A) => Promise<unknown>) {
  return async (...given: A) => {
    try {
      await run(...given);
    } catch (error) {
      void vscode.window.showErrorMessage(`memd: ${error instanceof Error ? error.message : error}`);
    }
  };
}

async function offerUndo(memories: Memories, words: string, change: string): Promise<void> {
  if (await vscode.window.showInformationMessage(words, "Undo")) await undo(memories, change);
}

async function undo(memories: Memories, change: string): Promise<void> {
  const { conflicts } = await memories.undo(change);
  const left = conflicts.length ? ` Left alone, since they changed: ${conflicts.join(", ")}.` : "";
  void vscode.window.showInformationMessage(`Took back ${change}.${left}`);
}

async function search(memories: Memories): Promise<void> {
  const pick = vscode.window.createQuickPick<vscode.QuickPickItem & { hit: Hit }>();
  pick.placeholder = "Search memories";
  let last = 0;
  pick.onDidChangeValue(
    shown(async (query: string) => {
      const number = ++last;
      pick.busy = true;
      const hits = await memories.search(query);
      if (number !== last) return; // the person typed on
      pick.busy = false;
      pick.items = hits.map((hit) => ({
        label: hit.path,
        description: hit.description,
        detail: hit.snippet,
        alwaysShow: true,
        hit,
      }));
    }),
  );
  pick.onDidAccept(() => {
    const [chosen] = pick.selectedItems;
    if (chosen) void open(memories.cwd, chosen.hit.path);
    pick.hide();
  });
  pick.onDidHide(() => pick.dispose());
  pick.show();
}

async function saveSelection(memories: Memories): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const text = editor?.document.getText(editor.selection).trim();
  if (!text) throw new Error("Select what is to be remembered first.");
  const description = await vscode.window.showInputBox({
    prompt: "What does it say, in one line? It decides when the memory is found.",
    value: text.split("\n")[0].trim().slice(0, 120),
  });
  if (!description) return;
  const type = await vscode.window.showQuickPick([...TYPES], { placeHolder: "What kind of memory?" });
  if (!type) return;
  const path = await memories.save(text, description, type as MemoryType);
  const next = await vscode.window.showInformationMessage(`Saved ${path}.`, "Open");
  if (next) await open(memories.cwd, path);
}

async function history(memories: Memories, path: string): Promise<void> {
  const pick = vscode.window.createQuickPick<vscode.QuickPickItem & { change: Change }>();
  pick.title = path ? `History of ${path}` : "History of all memories";
  pick.placeholder = "Open a change to see its diff";
  pick.matchOnDescription = true;
  const load = async () => {
    pick.items = (await memories.history(path)).map((change) => ({
      label: change.id,
      description: summary(change),
      detail: `${new Date(change.at).toLocaleString()}  ${change.reason}`,
      buttons: [UNDO],
      change,
    }));
  };
  pick.onDidTriggerItemButton(
    shown(async ({ item }) => {
      await undo(memories, item.change.id);
      await load();
    }),
  );
  pick.onDidAccept(
    shown(async () => {
      const [chosen] = pick.selectedItems;
      pick.hide();
      if (chosen) await diff(memories, chosen.change);
    }),
  );
  pick.onDidHide(() => pick.dispose());
  await load();
  pick.show();
}

async function diff(memories: Memories, change: Change): Promise<void> {
  const versions = await memories.versions(change);
  const sides = versions.map(({ path, before, after }) => [
    address(memories.cwd, path),
    address(memories.cwd, path, before),
    address(memories.cwd, path, after),
  ]);
  await vscode.commands.executeCommand("vscode.changes", `${change.id}: ${change.reason}`, sides);
}

async function dream(memories: Memories): Promise<void> {
  const place = { location: vscode.ProgressLocation.Notification, title: "memd dreams", cancellable: true };
  const report = await vscode.window.withProgress(place, (progress, token) =>
    memories.dream((message) => progress.report({ message }), token),
  );
  const document = await vscode.workspace.openTextDocument({ language: "markdown", content: report });
  await vscode.window.showTextDocument(document, { preview: true });
}
