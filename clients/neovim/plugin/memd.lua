if vim.g.loaded_memd then
  return
end
vim.g.loaded_memd = true

vim.api.nvim_create_user_command('Memd', function(command)
  require('memd').run(command)
end, {
  nargs = '+',
  range = true,
  desc = 'Memories of this project, kept by memd',
  complete = function(...) return require('memd').complete(...) end,
})

-- A memory is a buffer memd://PATH: reading and writing it goes through memd.
local group = vim.api.nvim_create_augroup('memd', {})
vim.api.nvim_create_autocmd('BufReadCmd', {
  group = group,
  pattern = 'memd://*.md',
  callback = function(event) require('memd').read(event.buf) end,
})
vim.api.nvim_create_autocmd('BufWriteCmd', {
  group = group,
  pattern = 'memd://*.md',
  callback = function(event) require('memd').write(event.buf) end,
})
