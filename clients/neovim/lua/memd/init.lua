-- :Memd VERB …: the memories of the project that the working directory belongs to.
local rpc = require('memd.rpc')

local M = {}
local TYPES = { user = true, feedback = true, project = true, reference = true }
local SCHEME = 'memd://'

local function say(text, level)
  vim.notify('memd: ' .. text, level or vim.log.levels.INFO)
end

local function ask(method, params)
  return rpc.ask(method, vim.tbl_extend('keep', params or {}, { cwd = vim.fn.getcwd() }))
end

-- Show lines that belong to no file in a split, and return the buffer.
local function show(lines, filetype)
  vim.cmd('new')
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].swapfile = false
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].filetype = filetype
  vim.bo[buffer].modifiable = false
  return buffer
end

local function one_line(text)
  return (text:gsub('%s+', ' '))
end

-- Put memories into the quickfix list, from where they open as buffers.
local function list(title, memories)
  local items = vim.tbl_map(function(memory)
    local text = one_line(memory.snippet or memory.description)
    return { filename = SCHEME .. memory.path, lnum = 1, text = text }
  end, memories)
  vim.fn.setqflist({}, ' ', { title = 'memd: ' .. title, items = items })
  if #items == 0 then
    say(title .. ': nothing')
  else
    vim.cmd('copen')
  end
end

local function all()
  local memories, after = {}, nil
  repeat
    local page = ask('memory.list', { after = after })
    vim.list_extend(memories, page.memories)
    after = page.next
  until not after
  return memories
end

local function files(touched)
  local words = vim.tbl_map(function(file) return file.action .. ' ' .. file.path end, touched)
  return table.concat(words, ', ')
end

local function undo(change)
  local result = ask('memory.undo', { change = change })
  local left = #result.conflicts > 0
  local words = left and '; left alone, since they changed: ' .. table.concat(result.conflicts, ', ')
  local level = left and vim.log.levels.WARN or nil
  say('took back ' .. result.undone .. ': ' .. files(result.files) .. (words or ''), level)
end

local function diff(change)
  local lines = {}
  for _, file in ipairs(ask('memory.diff', { change = change }).files) do
    vim.list_extend(lines, vim.split(vim.trim(file.diff), '\n'))
  end
  show(lines, 'diff')
end

local verbs = {}

function verbs.search(words)
  list(words, ask('memory.search', { query = words }).hits)
end

function verbs.list()
  list('all memories', all())
end

function verbs.show(path)
  vim.cmd('edit ' .. vim.fn.fnameescape(SCHEME .. path))
end

-- Save lines as a memory: [TYPE] DESCRIPTION; asks for a description that is not given.
function verbs.save(words, command)
  local kind, description = words:match('^(%l+)%s*(.*)$')
  if not TYPES[kind] then
    kind, description = 'project', words
  end
  if description == '' then
    description = vim.fn.input('What does it say, in one line? ')
  end
  local name = description:lower():gsub('[^a-z0-9]+', '-'):gsub('^-', ''):sub(1, 60):gsub('-$', '')
  if name == '' then
    name = os.date('note-%Y%m%d-%H%M%S')
  end
  local lines = vim.api.nvim_buf_get_lines(0, command.line1 - 1, command.line2, false)
  local saved = ask('memory.write', {
    path = name .. '.md',
    name = name,
    description = description,
    type = kind,
    body = table.concat(lines, '\n') .. '\n',
    base_hash = '', -- only where no memory of this name is
  })
  say('saved ' .. saved.path .. (saved.note ~= '' and '; ' .. saved.note or ''))
end

function verbs.history(path)
  local changes = ask('memory.history', { path = path, limit = 100 }).changes
  local lines = vim.tbl_map(function(change)
    local who = change.actor .. (change.client ~= '' and ' (' .. change.client .. ')' or '')
    return ('%s  %s  %s  %s'):format(change.id, change.at:sub(1, 16), who, files(change.files))
  end, changes)
  local buffer = show(lines, 'memdhistory')
  local function here()
    return vim.api.nvim_get_current_line():match('^%S+')
  end
  local function map(key, action)
    vim.keymap.set('n', key, function() M.guard(action, here()) end, { buffer = buffer })
  end
  map('<CR>', diff)
  map('u', undo)
end

function verbs.undo(change)
  undo(change ~= '' and change or nil)
end

function verbs.why(path)
  local why = ask('memory.why', { path = path })
  local lines = { path .. (why.origin ~= '' and ', in the words of: ' .. why.origin or '') }
  for _, part in ipairs({ 'first', 'last' }) do
    local writer = why[part]
    if writer then
      table.insert(lines, ('%s written %s by %s: %s'):format(
        part, writer.at, writer.client ~= '' and writer.client or writer.actor, one_line(writer.reason)))
    end
  end
  local surfaced = why.surfaced
  table.insert(lines, surfaced and 'last surfaced ' .. surfaced.at or 'never surfaced')
  show(lines, '')
end

local watched -- the dream that was started here

local function progressed(method, params)
  if not watched or params.job ~= watched then
    return
  elseif method == 'job.progress' then
    local turn = params.turn and ', turn ' .. params.turn or ''
    vim.api.nvim_echo({ { 'memd: dream: ' .. tostring(params.phase) .. turn } }, false, {})
  elseif method == 'job.done' then
    watched = nil
    say('the dream has ended; :Memd report shows what it did')
  end
end
rpc.listen(progressed)

function verbs.dream()
  ask('subscribe', { topics = { 'job.progress', 'job.done' } })
  local dream = ask('dream', { force = true })
  watched = dream.job
  say('dream: ' .. dream.status .. (dream.reason and ': ' .. dream.reason or ''))
end

function verbs.report()
  show(vim.split(ask('dream.status').markdown, '\n'), 'markdown')
end

-- Call an action and show what it raises as a message.
function M.guard(action, ...)
  local well, failure = pcall(action, ...)
  if not well then
    say((tostring(failure):gsub('^memd: ', '')), vim.log.levels.ERROR)
  end
end

function M.run(command)
  local name, words = command.args:match('^(%S+)%s*(.-)%s*$')
  if not verbs[name] then
    local known = vim.tbl_keys(verbs)
    table.sort(known)
    return say(name .. ' is none of ' .. table.concat(known, ', '), vim.log.levels.ERROR)
  end
  M.guard(verbs[name], words, command)
end

function M.complete(start, line)
  local words = vim.split(line:match('Memd%s+(.*)$') or '', '%s+')
  local known = {}
  if #words <= 1 then
    known = vim.tbl_keys(verbs)
  elseif vim.tbl_contains({ 'show', 'history', 'why' }, words[1]) then
    local well, memories = pcall(all)
    known = well and vim.tbl_map(function(memory) return memory.path end, memories) or {}
  elseif words[1] == 'save' then
    known = vim.tbl_keys(TYPES)
  end
  table.sort(known)
  return vim.tbl_filter(function(word) return vim.startswith(word, start) end, known)
end

-- Fill a buffer memd://PATH. It stays with the project that it was opened in.
function M.read(buffer)
  local path = vim.api.nvim_buf_get_name(buffer):sub(#SCHEME + 1)
  vim.b[buffer].memd_cwd = vim.b[buffer].memd_cwd or vim.fn.getcwd()
  M.guard(function()
    local memory = ask('memory.read', { path = path, cwd = vim.b[buffer].memd_cwd })
    local lines = vim.split(memory.content:gsub('\n$', ''), '\n', { plain = true })
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
    vim.b[buffer].memd_hash = memory.hash
    vim.bo[buffer].modified = false
  end)
  vim.bo[buffer].buftype = 'acwrite'
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modeline = false -- its text may come from a web page
  vim.bo[buffer].filetype = 'markdown'
end

-- Save a buffer memd://PATH; what somebody else wrote meanwhile is merged, or refused.
function M.write(buffer)
  M.guard(function()
    local saved = ask('memory.write', {
      path = vim.api.nvim_buf_get_name(buffer):sub(#SCHEME + 1),
      cwd = vim.b[buffer].memd_cwd,
      content = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') .. '\n',
      base_hash = vim.b[buffer].memd_hash or '',
    })
    M.read(buffer) -- memd may have merged it and stamps what it writes
    say(saved.status .. ' ' .. saved.path)
  end)
end

return M
