" memd in Vim 8.2 and newer: source this file in your vimrc. memctl must be on the PATH.
"   :MemdSearch WORDS            memories of this project that match, in the quickfix list
"   :MemdList                    all of them
"   :[range]MemdSave SENTENCE    saves the lines as a new memory with this sentence
"   :MemdUndo                    takes the newest change back
" A memory opens as memd://PATH; :write saves it unless somebody changed it meanwhile.
function s:memctl(arguments, input = '') abort
  let said = system('memctl ' .. join(map(copy(a:arguments), 'shellescape(v:val)')), a:input)
  if v:shell_error
    throw 'memd: ' .. trim(said)
  endif
  return said
endfunction

function s:list(arguments, rows) abort
  let found = json_decode(s:memctl(['--json', '--quiet'] + a:arguments))[a:rows]
  call setqflist(map(found, {_, row -> #{filename: 'memd://' .. row.path, text: row.description}}))
  copen
endfunction

function s:read(path) abort
  let memory = json_decode(s:memctl(['--json', '--quiet', 'call', 'memory.read', 'path=' .. a:path]))
  setlocal buftype=acwrite noswapfile nomodeline filetype=markdown " its text may be a stranger's
  call setline(1, split(memory.content, "\n"))
  let b:memd_hash = memory.hash
  setlocal nomodified
endfunction

function s:write(path) abort
  let text = join(getline(1, '$'), "\n") .. "\n"
  call s:memctl(['add', a:path, '--update', '--file', '-', '--base-hash', b:memd_hash], text)
  call s:read(a:path)
endfunction

command -nargs=+ MemdSearch call s:list(['search', '--', <q-args>], 'hits')
command MemdList call s:list(['list'], 'memories')
command -nargs=+ -range MemdSave
      \ echo s:memctl(['add', '--description', <q-args>, '--body', '-'], join(getline(<line1>, <line2>), "\n"))
command MemdUndo echo s:memctl(['undo'])
augroup memd
  autocmd!
  autocmd BufReadCmd memd://* call s:read(expand('<afile>')[7:])
  autocmd BufWriteCmd memd://* call s:write(expand('<afile>')[7:])
augroup END
