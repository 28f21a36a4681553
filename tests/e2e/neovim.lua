-- Neovim's own JSON-RPC client, unchanged: vim.lsp.rpc.connect on memd's socket.
local socket, cwd = vim.env.E2E_SOCKET, vim.env.E2E_CWD
local answers = {}
local client = vim.lsp.rpc.connect(socket)({
  notification = function() end,
  server_request = function() end,
  on_error = function() end,
  on_exit = function() end,
})
client.request("load_prompt", { cwd = cwd }, function(_, result)
  answers.prompt = #result.prompt
end)
client.request("memory.read", { cwd = cwd, path = "no.md" }, function(failure)
  answers.refused = failure.code
end)
vim.wait(10000, function() return answers.prompt and answers.refused end, 10)
io.stdout:write(vim.json.encode(answers) .. "\n")
client.terminate()
