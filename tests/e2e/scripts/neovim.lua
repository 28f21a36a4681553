-- Neovim's own JSON-RPC client, unchanged: vim.lsp.rpc.connect on memd's socket.
local client = vim.lsp.rpc.connect(vim.env.E2E_SOCKET)({
  notification = function() end,
  server_request = function() end,
  on_error = function() end,
  on_exit = function() end,
})

local function call(method, params)
  local answer
  client.request(method, vim.json.decode(params), function(failure, result)
    answer = { failure = failure, result = result }
  end)
  vim.wait(10000, function() return answer end, 10)
  return answer
end

local seen = {
  recalled = call("prefetch", vim.env.E2E_RECALL).result.block,
  refused = call("memory.read", vim.env.E2E_ABSENT).failure.code,
  saved = call("memory.write", vim.env.E2E_SAVE).result.path,
}
io.stdout:write(vim.json.encode(seen) .. "\n")
client.terminate()
