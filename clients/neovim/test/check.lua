-- Run by test/run inside Neovim, in a project's directory, with a daemon at $MEMD_SOCKET.
vim.o.modeline = true -- off for root
local notes = {}
vim.notify = function(text) table.insert(notes, text) end

local function check(name, action)
  local well, failure = xpcall(action, debug.traceback)
  io.stdout:write((well and 'ok ' or 'failed ') .. name .. (well and '' or ': ' .. failure) .. '\n')
  if not well then
    vim.cmd('cquit')
  end
end

local function equal(value, wanted)
  if value ~= wanted then
    error(vim.inspect(value) .. ' is not ' .. vim.inspect(wanted), 2)
  end
end

local function note(pattern)
  local last = notes[#notes] or ''
  assert(last:find(pattern), 'the last note is: ' .. last)
end

local function titles()
  return table.concat(vim.tbl_map(function(item)
    return vim.fn.bufname(item.bufnr) .. ' ' .. item.text
  end, vim.fn.getqflist()), '\n')
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
end

check('save the selection', function()
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'above', 'Herons nest at the north pond.', 'below' })
  vim.cmd('2Memd save reference herons nest at the north pond')
  note('saved herons%-nest%-at%-the%-north%-pond.md')
end)
check('a name that is taken is refused', function()
  vim.cmd('2Memd save reference herons nest at the north pond')
  note('herons')
  assert(not notes[#notes]:find('saved'))
end)
check('search finds it', function()
  vim.cmd('Memd search herons pond')
  assert(titles():find('memd://herons%-nest.*north pond'), titles())
end)
check('what another client saved is found', function()
  if vim.env.MEMD_TEST_EXPECT then
    vim.cmd('Memd search ' .. vim.env.MEMD_TEST_EXPECT)
    assert(titles():find('memd://'), titles())
  end
end)
check('save what is to be recalled by another client', function()
  local statement = vim.env.MEMD_TEST_SAVE
  if statement then
    vim.cmd('enew')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { statement })
    vim.cmd('Memd save project ' .. statement)
    note('saved ')
  end
end)
check('list and complete', function()
  vim.cmd('Memd list')
  assert(titles():find('memd://herons'), titles())
  assert(vim.tbl_contains(vim.fn.getcompletion('Memd show her', 'cmdline'), 'herons-nest-at-the-north-pond.md'))
  assert(vim.tbl_contains(vim.fn.getcompletion('Memd hi', 'cmdline'), 'history'))
end)
check('show, edit and write', function()
  vim.cmd('Memd show herons-nest-at-the-north-pond.md')
  assert(text():find('\nHerons nest at the north pond.'), text())
  equal(vim.bo.filetype, 'markdown')
  vim.cmd('%s/north pond\\./north pond in spring. vim: set textwidth=7:/')
  vim.cmd('write')
  note('updated herons')
  equal(vim.bo.modified, false)
  assert(text():find('pond in spring'), text())
  vim.cmd('bwipeout | Memd show herons-nest-at-the-north-pond.md')
  equal(vim.bo.textwidth, 0) -- a memory sets no option
end)
check('history and diff', function()
  vim.cmd('Memd history herons-nest-at-the-north-pond.md')
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  assert(lines[2]:find('client %(neovim%)  created herons'), lines[2])
  assert(lines[1]:find('client %(neovim%)  updated herons'), lines[1])
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes('<CR>', true, false, true), 'x', false)
  assert(text():find('\n%+Herons nest at the north pond in spring'), text())
  equal(vim.bo.filetype, 'diff')
end)
check('undo takes back the newest', function()
  vim.cmd('Memd undo')
  note('took back c%d+: %a+ herons')
  vim.cmd('Memd show herons-nest-at-the-north-pond.md')
  vim.cmd('edit!')
  assert(text():find('\nHerons nest at the north pond%.'), text())
end)
check('why', function()
  vim.cmd('Memd why herons-nest-at-the-north-pond.md')
  assert(text():find('by neovim'), text())
end)
check('a refusal is a message', function()
  vim.cmd('Memd history no such.md')
  vim.cmd('Memd undo c999')
  note('c999')
  vim.cmd('Memd nonsense')
  note('is none of')
end)
check('dream and its report', function()
  vim.cmd('Memd dream')
  assert(vim.wait(20000, function() return (notes[#notes]):find('has ended') end, 20), notes[#notes])
  vim.cmd('Memd report')
  equal(vim.bo.filetype, 'markdown')
  assert(#text() > 0)
end)
check('a lost connection is made again', function()
  require('memd.rpc').close()
  vim.cmd('Memd search herons')
  assert(titles():find('memd://herons'), titles())
end)
-- What was only made to be tested goes again.
require('memd.rpc').ask('memory.delete', { cwd = vim.fn.getcwd(), path = 'herons-nest-at-the-north-pond.md' })
require('memd.rpc').close()
vim.cmd('qall!')
