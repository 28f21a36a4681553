-- The connection to memd's socket: one for the editor, made when it is first needed and again
-- after memd went away. Neovim's own JSON-RPC client carries it where that knows Unix sockets
-- (0.10); before that it is one JSON text a line over a pipe of libuv.
local M = {}

local uv = vim.uv or vim.loop
local ANSWER_MS = 10000
local CONNECT_MS = 1000
-- What decides which memory directory is meant (docs/protocol.md of memd, "Who calls").
local FORWARDED = {
  'MEMD_MEMORY_PATH', 'CLAUDE_COWORK_MEMORY_PATH_OVERRIDE', 'CLAUDE_CODE_REMOTE_MEMORY_DIR',
  'MEMD_BASE_DIR', 'CLAUDE_CONFIG_DIR', 'MEMD_DISABLE', 'CLAUDE_CODE_DISABLE_AUTO_MEMORY',
  'CLAUDE_CODE_SIMPLE', 'CLAUDE_CODE_REMOTE', 'MEMD_EXTRA_GUIDELINES',
  'CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES',
}

local connection -- { request = function(method, params, callback), close = function() }
local listeners = {}

local function memctl(...)
  local command = { vim.g.memd_memctl or 'memctl', ... }
  if vim.fn.executable(command[1]) == 0 then
    error('memd: there is no ' .. command[1] .. '; install memd or set g:memd_memctl', 0)
  end
  return vim.trim(vim.fn.system(command))
end

-- Return a pipe on which somebody listens, nil if nobody does or others can reach its folder.
local function open(path)
  if vim.fn.getfperm(vim.fn.fnamemodify(path, ':h')) ~= 'rwx------' then
    return nil
  end
  local pipe, ended, failure = uv.new_pipe(false), false, nil
  pipe:connect(path, function(err)
    ended, failure = true, err
  end)
  vim.wait(CONNECT_MS, function() return ended end, 5)
  if ended and not failure then
    return pipe
  end
  pipe:close()
end

local function lost()
  connection = nil
end

local function notified(method, params)
  for _, listener in ipairs(listeners) do
    listener(method, params)
  end
end

local function over_lsp(path)
  local client = vim.lsp.rpc.connect(path)({
    notification = notified,
    server_request = function() end,
    on_error = function() end,
    on_exit = vim.schedule_wrap(lost),
  })
  return { request = client.request, close = client.terminate }
end

local function over_lines(pipe)
  local waiting, last, rest = {}, 0, ''
  local function receive(line)
    local message = vim.json.decode(line, { luanil = { object = true } })
    local callback = message.id and waiting[message.id]
    if callback then
      waiting[message.id] = nil
      callback(message.error, message.result)
    elseif message.method then
      notified(message.method, message.params)
    end
  end
  pipe:read_start(function(err, chunk)
    if err or not chunk then
      pipe:close()
      return vim.schedule(lost)
    end
    local lines = vim.split(rest .. chunk, '\n', { plain = true })
    rest = table.remove(lines)
    vim.schedule(function() vim.tbl_map(receive, lines) end)
  end)
  return {
    request = function(method, params, callback)
      last = last + 1
      waiting[last] = callback
      local request = { jsonrpc = '2.0', id = last, method = method, params = params }
      pipe:write(vim.json.encode(request) .. '\n')
    end,
    close = function()
      if not pipe:is_closing() then
        pipe:close()
      end
    end,
  }
end

local function connect()
  local path = vim.env.MEMD_SOCKET or memctl('config', '--socket-path')
  local pipe = open(path)
  if not pipe then
    local said = memctl('--quiet', 'status') -- starts memd where none runs
    pipe = open(path) or error('memd: nobody answers at ' .. path .. '; ' .. said, 0)
  end
  if vim.fn.has('nvim-0.10') == 1 then
    pipe:close()
    connection = over_lsp(path)
  else
    connection = over_lines(pipe)
  end
  local environment = vim.empty_dict()
  for _, name in ipairs(FORWARDED) do
    environment[name] = vim.env[name]
  end
  local version = vim.version()
  connection.request('hello', {
    client = 'neovim',
    version = ('%d.%d.%d'):format(version.major, version.minor, version.patch),
    environment = environment,
  }, function() end)
end

-- Send a request; callback(error, result) comes on the main loop.
function M.request(method, params, callback)
  if not connection then
    connect()
  end
  connection.request(method, params, callback)
end

-- Return the result of a request, or raise what memd says of it.
function M.ask(method, params)
  local ended, failure, result
  M.request(method, params, function(err, value)
    ended, failure, result = true, err, value
  end)
  local mine = connection
  vim.wait(ANSWER_MS, function() return ended or connection ~= mine end, 5)
  if not ended then
    error('memd: no answer to ' .. method, 0)
  elseif failure then
    local hint = type(failure.data) == 'table' and failure.data.hint or ''
    error('memd: ' .. failure.message .. (hint ~= '' and ' (' .. hint .. ')' or ''), 0)
  end
  return result
end

-- Have a function called with the method and parameters of each notification.
function M.listen(listener)
  table.insert(listeners, listener)
end

function M.close()
  if connection then
    connection.close()
  end
  lost()
end

return M
