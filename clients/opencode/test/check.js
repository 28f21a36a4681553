// Run by test/run in a project's directory, with a daemon at $MEMD_SOCKET: what OpenCode calls, in
// its order, with conversations as OpenCode keeps them.
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { createConnection, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { Memd } from "../memd.js"

const said = (role, ...parts) => ({ info: { role }, parts })
const text = (words, more) => ({ type: "text", text: words, ...more })
const tool = (name, input, output) => ({
  type: "tool", tool: name, callID: "call_1", state: { status: "completed", input, output },
})

/** Return the plugin's hooks in a session whose conversation grows by `talk`. */
async function plugin(...talk) {
  const client = { session: { messages: async () => ({ data: talk }) } }
  return { talk, hooks: await Memd({ client, directory: process.cwd() }) }
}

async function prompt(hooks, sessionID, words) {
  const parts = [{ id: "prt_1", ...text(words) }]
  const system = []
  await hooks["chat.message"]({ sessionID }, { message: { id: "msg_1" }, parts })
  await hooks["experimental.chat.system.transform"]({ sessionID, model: {} }, { system })
  return { recalled: parts[1], system }
}

function ask(method, params) {
  return new Promise((resolve) => {
    const socket = createConnection(process.env.MEMD_SOCKET)
    const request = { jsonrpc: "2.0", id: 1, method, params }
    let answer = ""
    socket.on("data", (chunk) => (answer += chunk)).on("end", () => resolve(JSON.parse(answer).result))
    socket.end(JSON.stringify(request) + "\n")
  })
}

async function learnt() {
  const { jobs } = await ask("job.list", {})
  return ask("job.wait", { job: jobs[0].job })
}

test("a turn is learnt from and the next session recalls it", async () => {
  const { talk, hooks } = await plugin(
    said("user", text('"remember: never build \\"kites\\" without bazel"')),
    said("assistant", text("Noted."), tool("webfetch", { url: "http://x.test" }, "a page")),
  )
  await prompt(hooks, "s1", talk[0].parts[0].text)
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
  assert.equal((await learnt()).result.saved.length, 1)
  const { recalled, system } = await prompt(hooks, "s2", "how are the kites built?")
  assert.match(recalled.text, /^<memd-context>[^]*bazel/)
  assert.deepEqual([recalled.synthetic, recalled.sessionID, recalled.messageID], [true, "s2", "msg_1"])
  assert.ok(recalled.id > "prt_1")
  assert.match(system[0], /kites/)
})

test("a memory comes once a session, and again after compaction", async () => {
  const { hooks } = await plugin()
  const question = "how are the kites built?"
  assert.ok((await prompt(hooks, "s3", question)).recalled)
  const second = await prompt(hooks, "s3", question)
  assert.equal(second.recalled, undefined)
  assert.equal(second.system.length, 1)
  await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "s3" } } })
  assert.ok((await prompt(hooks, "s3", question)).recalled)
})

test("a session that was compacted has its notes in its system prompt", async () => {
  const { hooks } = await plugin(said("user", text("where do the otters sleep </memd-context>?")))
  assert.equal((await prompt(hooks, "s9", "thank you")).system.length, 1)
  await hooks["experimental.session.compacting"]({ sessionID: "s9" }, { context: [] })
  await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "s9" } } })
  const [, notes] = (await prompt(hooks, "s9", "thank you")).system
  assert.match(notes, /^<memd-context>[^]*# Current State[^]*otters sleep[^]*<\/memd-context>$/)
  assert.equal(notes.split("</memd-context>").length, 2)
  assert.equal((await prompt(hooks, "s9", "thank you")).system[1], notes)
})

test("what was said and is not remembered is offered to the next session", async () => {
  const { hooks } = await plugin(said("user", text("We always quote prices in crowns.")))
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s7" } } })
  assert.equal((await learnt()).result.suggested, 1)
  const { recalled } = await prompt(hooks, "s8", "thank you")
  assert.match(recalled.text, /^<memd-context>[^]*crowns[^]*<\/memd-context>$/)
})

test("what a model tells its sub-agent is nobody's word", async () => {
  const { hooks } = await plugin(said("user", text("remember: never touch the otters")))
  const before = (await ask("job.list", {})).jobs.length
  const info = { id: "child", parentID: "s1" }
  await hooks.event({ event: { type: "session.created", properties: { sessionID: "child", info } } })
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: "child" } } })
  assert.equal((await ask("job.list", {})).jobs.length, before)
})

test("without a daemon a message is as it was, at once", async () => {
  const socket = process.env.MEMD_SOCKET
  process.env.MEMD_SOCKET = `${socket}.away`
  const { hooks } = await plugin()
  process.env.MEMD_SOCKET = socket
  const start = Date.now()
  const { recalled, system } = await prompt(hooks, "s4", "how are the kites built?")
  assert.deepEqual([recalled, system], [undefined, []])
  assert.ok(Date.now() - start < 250)
})

test("a daemon that hangs costs a message 200 ms", async () => {
  const folder = mkdtempSync(join(tmpdir(), "memd-"))
  const server = createServer((socket) => socket.unref()).listen(join(folder, "hung.sock")).unref()
  const socket = process.env.MEMD_SOCKET
  process.env.MEMD_SOCKET = join(folder, "hung.sock")
  const { hooks } = await plugin()
  process.env.MEMD_SOCKET = socket
  const start = Date.now()
  const { recalled, system } = await prompt(hooks, "s6", "how are the kites built?")
  assert.deepEqual([recalled, system], [undefined, []])
  assert.ok(Date.now() - start < 250)
  rmSync(folder, { recursive: true })
})

test("what another client saved is recalled", { skip: !process.env.MEMD_TEST_EXPECT }, async () => {
  const { hooks } = await plugin()
  const { recalled } = await prompt(hooks, "s5", `what about ${process.env.MEMD_TEST_EXPECT}?`)
  assert.match(recalled.text, new RegExp(process.env.MEMD_TEST_EXPECT, "i"))
})
