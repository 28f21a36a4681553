// The three views: memories by type, what was surfaced, and suggestions.
import * as vscode from "vscode";
import { address } from "./files";
import { byType, type Memories, type Memory, type Suggestion } from "./memories";

/** A line of a view. What the commands of its menu are about is in `memory` or `suggestion`. */
export class Line extends vscode.TreeItem {
  memory?: Memory;
  suggestion?: Suggestion;
  lines: Line[] = [];
}

/** A view that asks for its lines when it is shown or refreshed. */
export class Lines implements vscode.TreeDataProvider<Line> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly load: () => Promise<Line[]>) {}

  refresh(): void {
    this.changed.fire();
  }

  getTreeItem(line: Line): Line {
    return line;
  }

  getChildren(line?: Line): Line[] | Promise<Line[]> {
    return line ? line.lines : this.load();
  }
}

function memoryLine(cwd: string, memory: Memory, note: string): Line {
  const line = new Line(memory.name);
  line.memory = memory;
  line.description = note;
  line.tooltip = `${memory.path}\n${memory.description}`;
  line.contextValue = "memory";
  line.iconPath = new vscode.ThemeIcon("note");
  line.command = { command: "vscode.open", title: "Open", arguments: [address(cwd, memory.path)] };
  return line;
}

export async function memoryLines(memories: Memories): Promise<Line[]> {
  return byType(await memories.list()).map(([type, members]) => {
    const group = new Line(type, vscode.TreeItemCollapsibleState.Expanded);
    group.description = String(members.length);
    group.lines = members.map((memory) => memoryLine(memories.cwd, memory, memory.description));
    return group;
  });
}

export async function surfacedLines(memories: Memories): Promise<Line[]> {
  return (await memories.surfaced()).map(({ memory, at, session }) => {
    const line = memoryLine(memories.cwd, memory, new Date(at).toLocaleString());
    line.tooltip = `${memory.description}\nlast in session ${session}`;
    return line;
  });
}

export async function suggestionLines(memories: Memories): Promise<Line[]> {
  return (await memories.suggestions()).map((suggestion) => {
    const line = new Line(suggestion.text);
    line.suggestion = suggestion;
    line.description = suggestion.type;
    line.tooltip = suggestion.origin === "user" ? `“${suggestion.text}”` : "in a model's words";
    line.contextValue = "suggestion";
    line.iconPath = new vscode.ThemeIcon("lightbulb");
    return line;
  });
}
