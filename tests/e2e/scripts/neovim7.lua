-- Neovim before 0.10, whose own client knows no Unix socket: libuv and one line of JSON each way.
local pipe = vim.loop.new_pipe(false)
local buffer, connected = "", false
pipe:connect(os.getenv("E2E_SOCKET"), function(failure)
  assert(not failure, failure)
  pipe:read_start(function(_, data) buffer = buffer .. (data or "") end)
  connected = true
end)
vim.wait(10000, function() return connected end, 10)

local number = 0
local function call(method, params)
  number = number + 1
  local message = { jsonrpc = "2.0", id = number, method = method, params = vim.json.decode(params) }
  pipe:write(vim.json.encode(message) .. "\n")
  vim.wait(10000, function() return buffer:find("\n") end, 10)
  local line
  line, buffer = buffer:match("^(.-)\n(.*)$")
  return vim.json.decode(line)
end

local seen = {
  recalled = call("prefetch", os.getenv("E2E_RECALL")).result.block,
  refused = call("memory.read", os.getenv("E2E_ABSENT")).error.code,
  saved = call("memory.write", os.getenv("E2E_SAVE")).result.path,
}
io.stdout:write(vim.json.encode(seen) .. "\n")
pipe:close()
