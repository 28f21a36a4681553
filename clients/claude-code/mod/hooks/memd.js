// memd in Claude Code's own process: what memd's hooks do, without a process for each event.
//
// - An event's payload goes to the daemon as it is; the daemon builds the text for the model.
// - Claude Code never waits for memd longer than its hooks wait, and never fails because of it.
// - Where memd's hooks are in the settings, or its plugin is enabled, this file does nothing.
// - An end of a turn or a session, or a compaction, that nobody answered goes to `memctl hook`, which
//   keeps it for later; that, and a session's start, start a daemon where none runs.
// - Nothing is sent to a socket whose folder others can reach.
// - Names of variables are written out: Claude Code lists to its user what a mod reads.

const WAIT_MS = { SessionStart: 400, PreCompact: 800, Stop: 40, SessionEnd: 40 }
const PROMPT_MS = 200
const KEPT = ["Stop", "PreCompact", "SessionEnd"] // what `memctl hook` keeps for later
const FRAME_BYTES = 4 * 1024 * 1024 - 64 * 1024 // of a payload, as the hook has it
const URL = "http://memd/" // of every request; where it goes is the socket's path
const WAIT = "memd-wait" // the header that tells `end` how many milliseconds a request has
// Prints the first socket that is the user's own, in a folder that is closed to others.
const FIND_SOCKET = `for s do
  d=\${s%/*}
  [ -S "$s" ] && [ -O "$s" ] && [ -O "$d" ] || continue
  case $(ls -ld "$d") in d???------*) printf %s "$s"; exit;; esac
done`

let session // what stays the same while Claude Code runs: a promise of `readSession`'s result
let socket // the path of memd's socket, "" while it is not known

/** Return the variables that decide which memory directory is meant (docs/protocol.md of memd). */
async function readEnvironment($) {
  const read = {
    MEMD_MEMORY_PATH: $.env.get("MEMD_MEMORY_PATH"),
    CLAUDE_COWORK_MEMORY_PATH_OVERRIDE: $.env.get("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"),
    CLAUDE_CODE_REMOTE_MEMORY_DIR: $.env.get("CLAUDE_CODE_REMOTE_MEMORY_DIR"),
    MEMD_BASE_DIR: $.env.get("MEMD_BASE_DIR"),
    CLAUDE_CONFIG_DIR: $.env.get("CLAUDE_CONFIG_DIR"),
    CLAUDE_PROJECT_DIR: $.env.get("CLAUDE_PROJECT_DIR"),
    MEMD_DISABLE: $.env.get("MEMD_DISABLE"),
    CLAUDE_CODE_DISABLE_AUTO_MEMORY: $.env.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY"),
    CLAUDE_CODE_SIMPLE: $.env.get("CLAUDE_CODE_SIMPLE"),
    CLAUDE_CODE_REMOTE: $.env.get("CLAUDE_CODE_REMOTE"),
    CLAUDE_CODE_SESSION_ATTENDED: $.env.get("CLAUDE_CODE_SESSION_ATTENDED"),
    DISABLE_COMPACT: $.env.get("DISABLE_COMPACT"),
    DISABLE_AUTO_COMPACT: $.env.get("DISABLE_AUTO_COMPACT"),
    MEMD_CONTEXT_WINDOW: $.env.get("MEMD_CONTEXT_WINDOW"),
    MEMD_EXTRA_GUIDELINES: $.env.get("MEMD_EXTRA_GUIDELINES"),
    CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES: $.env.get("CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES"),
  }
  const values = await Promise.all(Object.entries(read).map(async ([name, value]) => [name, await value]))
  return Object.fromEntries(values.filter(([, value]) => value !== undefined))
}

/** Return the paths at which memd's socket may be, by the rule of docs/protocol.md. */
async function readPlaces($) {
  const named = await $.env.get("MEMD_SOCKET")
  if (named) return [named]
  const runtime = await $.env.get("XDG_RUNTIME_DIR")
  if (runtime) return [`${runtime}/memd/memd.sock`]
  const [home, state, states] = await Promise.all([
    $.env.get("HOME"), $.env.get("MEMD_STATE_DIR"), $.env.get("XDG_STATE_HOME"),
  ])
  if (state) return [`${state}/run/memd.sock`]
  const folders = [`${states || `${home}/.local/state`}/memd`, `${home}/Library/Application Support/memd`]
  return folders.map((folder) => `${folder}/run/memd.sock`)
}

/** Return whether memd's hooks serve this session, or memd itself runs it for a model. */
async function isServed($) {
  const settings = await $.settings.read()
  const plugins = Object.entries(settings.enabledPlugins ?? {})
  return (
    (await $.env.get("MEMD_MODEL_RUN")) !== undefined ||
    JSON.stringify(settings.hooks ?? {}).includes("memd/hook.py") ||
    plugins.some(([name, enabled]) => enabled && name.startsWith("memd@"))
  )
}

async function readSession($) {
  const [served, environment, places, setting] = await Promise.all([
    isServed($), readEnvironment($), readPlaces($), $.env.get("MEMD_HOOK_DEADLINE_MS"),
  ])
  const wait = /^\d+$/.test(setting ?? "") ? Number(setting) : 0
  return { served, environment, places, promptMs: wait >= 10 && wait <= 10000 ? wait : PROMPT_MS }
}

/** Return the daemon's answer to an event, undefined where there is none. */
async function ask($, event, payload, wait) {
  const { environment, places } = await session
  const params = { client: "claude-code", event, environment, deadline_ms: wait, payload }
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hook", params })
  if (body.length > FRAME_BYTES) return undefined
  socket ||= (await $.process.run(["/bin/sh", "-c", FIND_SOCKET, "sh", ...places])).stdout
  if (!socket) return undefined
  const request = { method: "POST", body, socketPath: socket, headers: { [WAIT]: `${wait}` } }
  const reply = await $.http.fetch(URL, request).catch(() => undefined)
  if (reply?.ok) return JSON.parse(reply.text)
  socket = "" // the next daemon may be elsewhere
  return undefined
}

/** End a request at its time: Claude Code waits for one that is open, at a turn's end and its own. */
async function end($, e, next) {
  const late = $.clock.sleep(Number(e.init.headers[WAIT])).then(() => ({ deny: "memd is late" }))
  return await Promise.race([next(e), late])
}

/** Give an event to memd and return what it adds to a result of Claude Code. */
async function give($, event, payload) {
  try {
    session ??= readSession($)
    const { served, promptMs } = await session
    if (served) return {}
    const wait = event === "UserPromptSubmit" ? promptMs : (WAIT_MS[event] ?? PROMPT_MS)
    const answer = await ask($, event, payload, wait)
    if (!answer && KEPT.includes(event)) await runHook($, event, payload)
    if (!answer && event === "SessionStart") void runHook($, event, payload)
    const { hookSpecificOutput = {}, systemMessage } = answer?.result ?? {}
    if (systemMessage) $.ui.toast(systemMessage)
    return hookSpecificOutput
  } catch {
    return {} // this Claude Code has another way to be asked
  }
}

async function runHook($, event, payload) {
  const stdin = JSON.stringify(payload)
  await $.process.run(["memctl", "hook", "claude-code", event], { stdin }).catch(() => {})
}

/** Serve one event: memd and the hooks beneath at the same time, memd's text behind theirs. */
async function serve($, e, next) {
  const event = e.hook_event_name
  const [{ additionalContext, updatedToolOutput }, result] = await Promise.all([give($, event, e), next(e)])
  return {
    ...result,
    ...(additionalContext && { additionalContext: [...(result.additionalContext ?? []), additionalContext] }),
    ...(updatedToolOutput !== undefined && { updatedToolOutput }),
  }
}

export function register(on) {
  on("http.fetch", { url: URL }, end)
  on("classic.SessionStart", serve)
  on("classic.UserPromptSubmit", serve)
  on("classic.Stop", serve)
  on("classic.PreCompact", serve)
  on("classic.SessionEnd", serve)
  on("classic.SubagentStart", serve)
  on("classic.PostToolUse", { tool_name: ["Write", "Edit", "MultiEdit"] }, serve)
}
