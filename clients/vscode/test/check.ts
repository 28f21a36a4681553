// The extension's parts that know no editor, against a real daemon at $MEMD_SOCKET, for a project
// in the folder where npm was started.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CancellationTokenSource } from "vscode-jsonrpc/node";
import { Daemon, Refusal } from "../src/daemon";
import { byType, Memories, slug, summary } from "../src/memories";

const cwd = process.env.INIT_CWD ?? process.cwd();
const daemon = new Daemon("memctl", ["memory.changed", "job.progress"]);
const memories = new Memories(daemon, cwd);
const path = "curlews-breed-on-the-moor.md";

before(async () => {
  if (process.env.MEMD_TEST_SAVE) {
    await memories.save(process.env.MEMD_TEST_SAVE, process.env.MEMD_TEST_SAVE, "project");
  }
});
after(async () => {
  await memories.forget(path); // it was only made to be tested
  daemon.close();
});

test("a selection is saved once, and a name that is taken is refused", async () => {
  const save = () => memories.save("Curlews breed on the moor.", "Curlews breed on the moor", "reference");
  assert.equal(await save(), path);
  await assert.rejects(save, (error) => error instanceof Refusal && error.kind === "conflict");
});

test("it is listed by its type and found by its words", async () => {
  const groups = new Map(byType(await memories.list()));
  assert.ok(groups.get("reference")!.some((memory) => memory.path === path));
  assert.equal((await memories.search("curlews moor"))[0].path, path);
  assert.deepEqual(await memories.search("  "), []);
});

test("what another client saved is found", { skip: !process.env.MEMD_TEST_EXPECT }, async () => {
  assert.ok((await memories.search(process.env.MEMD_TEST_EXPECT!)).length);
});

test("an edit is written over what was read, and what is older is no base", async () => {
  const { content, hash } = await memories.read(path);
  assert.match(content, /\nCurlews breed on the moor\.\n$/);
  const changed = content.replace("on the moor.", "on the high moor.");
  assert.equal((await memories.write(path, changed, hash)).status, "updated");
  const other = content.replace("on the moor.", "on the low moor.");
  await assert.rejects(memories.write(path, other, hash), Refusal);
});

test("its history has both texts of a change, and undo brings the first back", async () => {
  const [updated, created] = await memories.history(path);
  assert.equal(summary(updated), `client (vscode): updated ${path}`);
  const [{ before, after }] = await memories.versions(updated);
  assert.equal(before, created.id);
  assert.match(await memories.textAt(path, before), /on the moor\./);
  assert.match(await memories.textAt(path, after), /on the high moor\./);
  assert.deepEqual((await memories.undo(updated.id)).conflicts, []);
  assert.match((await memories.read(path)).content, /on the moor\./);
  assert.equal(await memories.textAt(path, ""), "");
});

test("what a prompt brought is surfaced, the latest first", async () => {
  const prompt = { cwd, session_id: `s${Date.now()}`, query: "where do curlews breed?", deadline_ms: 5000 };
  await daemon.request("prefetch", prompt);
  const [latest] = await memories.surfaced();
  assert.deepEqual([latest.memory.path, latest.session], [path, prompt.session_id]);
});

test("a suggestion can be accepted or dismissed", async () => {
  const said = ["We always quote prices in dollars.", "Never quote a price without tax."];
  for (const content of said) {
    const messages = [{ role: "user", content }];
    await daemon.request("extract", { cwd, session_id: `s${Date.now()}`, messages, wait: true });
  }
  const ours = async () => (await memories.suggestions()).filter(({ text }) => said.includes(text));
  const [first, second] = await ours();
  await memories.dismiss(first.id);
  await memories.forget(await memories.accept(second.id));
  assert.deepEqual(await ours(), []);
});

test("a change is told to those who listen", async () => {
  const told = new Promise<string>((resolve) => {
    const stop = daemon.listen((method) => (stop(), resolve(method)));
  });
  const { content, hash } = await memories.read(path);
  await memories.write(path, content.replace("on the moor.", "on the wet moor."), hash);
  assert.equal(await told, "memory.changed");
});

test("a dream ends with its report, and can be cancelled", async () => {
  assert.match(await memories.dream(() => undefined), /dream/i);
  const source = new CancellationTokenSource();
  const report = memories.dream(() => undefined, source.token);
  source.cancel();
  assert.ok(await report);
});

test("a lost connection is made again", async () => {
  daemon.close();
  assert.equal((await memories.read(path)).path, path);
});

test("where nobody listens the reason is said", async () => {
  const socket = process.env.MEMD_SOCKET;
  process.env.MEMD_SOCKET = `${socket}.away`;
  const away = new Memories(new Daemon("no-such-program"), cwd);
  await assert.rejects(away.list(), /no-such-program/);
  process.env.MEMD_SOCKET = socket;
});

test("a name is made of plain letters, or of the time", () => {
  assert.equal(slug("  Never mock: the DB!  "), "never-mock-the-db");
  assert.equal(slug("冰箱", new Date(0)), "note-19700101000000");
  assert.equal(slug("x".repeat(80)).length, 60);
});
