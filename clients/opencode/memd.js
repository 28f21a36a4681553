// memd in OpenCode: memory in the system prompt, recall with each message, learning after each turn;
// once a session was compacted, its notes stand in the system prompt too.
//
// - This file exports one function: OpenCode takes every export for a plugin.
// - OpenCode never waits for memd longer than WAIT_MS a message, and never fails because of it.
// - What is recalled goes into the message itself as a part that OpenCode keeps: memd brings each
//   memory once a session, so it must stay in the conversation.
// - What is learnt from is the talk with the person. The sessions of sub-agents are passed over:
//   there a model writes the messages of the "user".
import { execFile } from "node:child_process"
import { createConnection } from "node:net"
import { statSync } from "node:fs"
import { dirname } from "node:path"

const MESSAGES = false
const WAIT_MS = 200
const NOTES_CHARACTERS = 9000 // of the notes of a session that was compacted
const OUTPUT_CHARACTERS = 4000 // of one tool's output; memd takes a bounded frame
// What decides which memory directory is meant (docs/protocol.md of memd, "Who calls").
const FORWARDED = [
  "MEMD_MEMORY_PATH", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "CLAUDE_CODE_REMOTE_MEMORY_DIR",
  "MEMD_BASE_DIR", "CLAUDE_CONFIG_DIR", "MEMD_DISABLE", "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
  "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_REMOTE", "MEMD_EXTRA_GUIDELINES",
  "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES",
]
const ENVIRONMENT = Object.fromEntries(
  FORWARDED.filter((name) => name in process.env).map((name) => [name, process.env[name]]),
)
// As memd knows the tools that write files.
const WRITERS = { write: "Write", edit: "Edit" }

const memctl = (...args) =>
  new Promise((resolve) => {
    execFile("memctl", args, (failure, output) => resolve(failure ? "" : output.trim()))
  })

/** A connection to memd that is made when it is needed, one JSON text a line. */
class Daemon {
  #path
  #socket
  #waiting = new Map()
  #last = 0
  #rest = ""

  constructor(path = process.env.MEMD_SOCKET ?? memctl("config", "--socket-path")) {
    this.#path = path
  }

  /** Return a method's result; undefined where memd is away, refuses, or needs longer than `ms`. */
  async ask(method, params, ms = WAIT_MS) {
    let timer
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, ms)
    })
    const answer = this.#send(method, params).catch(() => this.close())
    const result = await Promise.race([answer, late])
    clearTimeout(timer)
    return result
  }

  async #send(method, params) {
    const socket = await (this.#socket ??= this.#connect())
    return new Promise((resolve) => {
      this.#waiting.set(++this.#last, resolve)
      socket.write(JSON.stringify({ jsonrpc: "2.0", id: this.#last, method, params }) + "\n")
    })
  }

  async #connect() {
    const path = await this.#path
    if (statSync(dirname(path)).mode & 0o077) throw new Error("others can reach memd's socket")
    const socket = createConnection(path)
    socket.setEncoding("utf8")
    socket.on("data", (chunk) => this.#receive(chunk))
    socket.on("error", () => {}) // "close" follows
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("close", reject))
    socket.on("close", () => this.close())
    socket.unref() // OpenCode may end while it is open
    const params = { client: "opencode", environment: ENVIRONMENT }
    socket.write(JSON.stringify({ jsonrpc: "2.0", id: 0, method: "hello", params }) + "\n")
    return socket
  }

  #receive(chunk) {
    const lines = (this.#rest + chunk).split("\n")
    this.#rest = lines.pop()
    for (const { id, result } of lines.map((line) => JSON.parse(line))) {
      this.#waiting.get(id)?.(result)
      this.#waiting.delete(id)
    }
  }

  /** Let go of the connection; the next request makes a new one. */
  close() {
    this.#socket?.then((socket) => socket.destroy()).catch(() => {})
    this.#socket = undefined
    for (const resolve of this.#waiting.values()) resolve(undefined)
    this.#waiting.clear()
    this.#rest = ""
  }
}

/** Return the person's words of a message's parts; `opencode run` puts them into quotes. */
function words(parts) {
  const texts = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
  const text = texts.map((part) => part.text).join("\n")
  const quoted = /^"((?:[^"\\]|\\.)*)"\s*$/s.exec(text)
  return quoted ? quoted[1].replaceAll('\\"', '"') : text
}

function toolBlocks(part) {
  const { input = {}, output = "" } = part.state
  const own = part.tool.startsWith("memd_")
  const name = WRITERS[part.tool] ?? (own ? `mcp__memd__${part.tool.slice(5)}` : part.tool)
  const given = input.filePath ? { ...input, file_path: input.filePath } : input
  return [
    { type: "tool_use", id: part.callID, name, input: given },
    { type: "tool_result", tool_use_id: part.callID, content: output.slice(0, OUTPUT_CHARACTERS) },
  ]
}

/** Return a conversation of OpenCode as messages of the Messages API. */
function conversation(messages) {
  return messages.flatMap(({ info, parts }) => {
    const text = info.role === "user" ? words(parts) : parts
      .filter((part) => part.type === "text").map((part) => part.text).join("\n")
    const blocks = text.trim() ? [{ type: "text", text }] : []
    const tools = parts.filter((part) => part.type === "tool").map(toolBlocks)
    const called = [...blocks, ...tools.map(([use]) => use)]
    const results = tools.map(([, result]) => result)
    return [
      ...(called.length ? [{ role: info.role, content: called }] : []),
      ...(results.length ? [{ role: "user", content: results }] : []),
    ]
  })
}

/** Messages of other agents: registers sessions and brings what waits for them. */
class Mailboxes {
  #daemon
  #directory
  #keys = new Map() // by session; a promise each
  #read = new Map() // by session: what was brought, read once the session goes on

  constructor(daemon, directory) {
    this.#daemon = daemon
    this.#directory = directory
  }

  #key(session) {
    if (!this.#keys.has(session)) {
      const about = { cwd: this.#directory, session_id: session, kind: "session", pid: process.pid }
      this.#keys.set(session, this.#daemon.ask("agent.register", about).then((made) => made?.key))
    }
    return this.#keys.get(session)
  }

  /** Make a session's agent known. */
  async begin(session) {
    if (MESSAGES && !(await this.#key(session))) this.#keys.delete(session)
  }

  /** Say that the session goes on: what was brought before is read. */
  async goesOn(session) {
    const ids = this.#read.get(session)
    this.#read.delete(session)
    if (ids?.length) await this.#daemon.ask("message.ack", { key: await this.#key(session), ids })
  }

  /** Return what waits for a session as a block, "" for nothing. */
  async bring(session) {
    if (!MESSAGES) return ""
    await this.begin(session)
    await this.goesOn(session)
    const key = await this.#key(session)
    const got = key && (await this.#daemon.ask("message.receive", { key, limit: 4 }))
    if (key && !got) this.#keys.delete(session) // memd began anew, or another took the name
    if (!got?.messages.length) return ""
    const before = this.#read.get(session) ?? [] // of a tool that ended at the same time
    this.#read.set(session, [...before, ...got.messages.map((message) => message.id)])
    return got.block
  }
}

export const Memd = async ({ client, directory }) => {
  const daemon = new Daemon()
  const prompts = new Map() // by session: its memory section, the same bytes until it is compacted
  const subAgents = new Set()
  const mailboxes = new Mailboxes(daemon, directory)
  const notes = new Map() // by session that was compacted: its notes, the same until the next time
  const ask = (method, session, more, ms) =>
    daemon.ask(method, { cwd: directory, session_id: session, ...more }, ms)
  void memctl("--quiet", "status") // starts memd where none runs; nobody waits for it

  const loadPrompt = async (session) => {
    if (prompts.has(session)) return
    const loaded = await ask("load_prompt", session)
    if (loaded) prompts.set(session, loaded.prompt)
  }

  const learn = async (session, more) => {
    const { data } = await client.session.messages({ path: { id: session } })
    const messages = conversation(data ?? [])
    await Promise.all([
      ask("extract", session, { messages }, 1000),
      ask("notes.update", session, { messages, ...more }, 1000),
    ])
  }

  const readNotes = async (session) => {
    const read = await ask("notes.read", session, { max_chars: NOTES_CHARACTERS })
    if (!read || read.empty) return
    const content = read.content.replaceAll(/<(?=[\W_]{0,8}memd)/gi, "&lt;") // poses as no tag
    return `<memd-context>\nWhat this session is about so far:\n\n${content}\n</memd-context>`
  }

  return {
    event: async ({ event: { type, properties } }) => {
      const session = properties.sessionID
      if (properties.info?.parentID && type.startsWith("session.")) subAgents.add(properties.info.id)
      if (type === "session.idle") await mailboxes.goesOn(session)
      if (type === "session.idle" && !subAgents.has(session)) await learn(session)
      if (type === "session.compacted") {
        prompts.delete(session)
        notes.set(session, readNotes(session))
        await ask("session", session, { event: "compacted" })
      }
    },

    "chat.message": async ({ sessionID }, { message, parts }) => {
      const payload = { session_id: sessionID, cwd: directory, prompt: words(parts) }
      const event = { client: "opencode", event: "chat.message", environment: ENVIRONMENT, payload }
      const [brought] = await Promise.all([
        daemon.ask("hook", { ...event, deadline_ms: WAIT_MS }), // memd takes three quarters of it
        loadPrompt(sessionID),
      ])
      const waiting = subAgents.has(sessionID) ? "" : await mailboxes.bring(sessionID)
      const blocks = [waiting, brought?.hookSpecificOutput?.additionalContext]
      const block = blocks.filter(Boolean).join("\n")
      if (!block) return
      const { id: before = "prt_" } = parts.at(-1) ?? {}
      const place = { id: `${before}m`, sessionID, messageID: message.id } // parts go by their ids
      parts.push({ ...place, type: "text", text: block, synthetic: true })
    },

    "tool.execute.after": async ({ sessionID }, result) => {
      // A tool of OpenCode has a text, one of an MCP server parts, a sub-agent that failed nothing.
      const written = typeof result?.output === "string"
      const takes = (written || Array.isArray(result?.content)) && !subAgents.has(sessionID)
      const waiting = takes && (await mailboxes.bring(sessionID))
      // In front: results are shortened from their end, by OpenCode and for memd.
      if (waiting && written) result.output = `${waiting}\n\n${result.output}`
      else if (waiting) result.content.unshift({ type: "text", text: waiting })
    },

    "experimental.session.compacting": ({ sessionID }) => learn(sessionID, { force: true }),

    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      system.push(...[prompts.get(sessionID), await notes.get(sessionID)].filter(Boolean))
    },
  }
}
