" Memories kept by memd. Vim's own channel speaks JSON-RPC as language servers do.
let s:types = ['user', 'feedback', 'project', 'reference']
let s:forwarded = ['MEMD_MEMORY_PATH', 'CLAUDE_COWORK_MEMORY_PATH_OVERRIDE',
      \ 'CLAUDE_CODE_REMOTE_MEMORY_DIR', 'MEMD_BASE_DIR', 'CLAUDE_CONFIG_DIR', 'MEMD_DISABLE',
      \ 'CLAUDE_CODE_DISABLE_AUTO_MEMORY', 'CLAUDE_CODE_SIMPLE', 'CLAUDE_CODE_REMOTE',
      \ 'MEMD_EXTRA_GUIDELINES', 'CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES']

function s:memctl(arguments) abort
  return trim(system(shellescape(get(g:, 'memd_memctl', 'memctl')) .. ' ' .. a:arguments))
endfunction

function s:alive() abort
  return exists('s:connected') && ch_status(s:connected) ==# 'open'
endfunction

" Connect where somebody listens and nobody else can reach the folder.
function s:open(path) abort
  if getfperm(fnamemodify(a:path, ':h')) ==# 'rwx------'
    let s:connected = ch_open('unix:' .. a:path, #{mode: 'lsp', timeout: 10000})
  endif
  return s:alive()
endfunction

function s:channel() abort
  if s:alive()
    return s:connected
  endif
  let path = empty($MEMD_SOCKET) ? s:memctl('config --socket-path') : $MEMD_SOCKET
  if !s:open(path)
    let said = s:memctl('--quiet status') " starts memd where none runs
    if !s:open(path)
      throw 'memd: nobody answers at ' .. path .. '; ' .. said
    endif
  endif
  let environment = filter(environ(), 'index(s:forwarded, v:key) >= 0')
  call ch_evalexpr(s:connected, #{method: 'hello', params:
        \ #{client: 'vim', version: string(v:version), environment: environment}})
  return s:connected
endfunction

" Return the result of a method for the project of the working directory, or throw what memd says.
function memd#ask(method, params) abort
  let params = extend(#{cwd: getcwd()}, a:params)
  let answer = ch_evalexpr(s:channel(), #{method: a:method, params: params})
  if type(answer) != v:t_dict
    throw 'memd: no answer to ' .. a:method
  elseif has_key(answer, 'error')
    throw 'memd: ' .. answer.error.message
  endif
  return answer.result
endfunction

function memd#run(words, first, last) abort
  let [verb; rest] = split(a:words)
  try
    if verb ==# 'search'
      call s:search(join(rest))
    elseif verb ==# 'show'
      execute 'edit' fnameescape('memd://' .. join(rest))
    elseif verb ==# 'save'
      call s:save(rest, getline(a:first, a:last))
    else
      throw 'memd: ' .. verb .. ' is none of save, search, show'
    endif
  catch /^memd:/
    echohl ErrorMsg | echomsg v:exception | echohl None
  endtry
endfunction

function s:search(query) abort
  let hits = memd#ask('memory.search', #{query: a:query}).hits
  call setqflist([], ' ', #{title: 'memd: ' .. a:query, items: mapnew(hits, {_, hit ->
        \ #{filename: 'memd://' .. hit.path, lnum: 1, text: substitute(hit.snippet, '\_s\+', ' ', 'g')}})})
  copen
endfunction

function s:save(words, lines) abort
  let typed = index(s:types, get(a:words, 0, '')) >= 0
  let description = join(typed ? a:words[1:] : a:words)
  if empty(description)
    let description = input('What does it say, in one line? ')
  endif
  let name = substitute(tolower(description), '[^a-z0-9]\+', '-', 'g')->trim('-')[:59]->trim('-')
  if empty(name)
    let name = strftime('note-%Y%m%d-%H%M%S')
  endif
  let saved = memd#ask('memory.write', #{
        \ path: name .. '.md', name: name, description: description,
        \ type: typed ? a:words[0] : 'project', body: join(a:lines, "\n") .. "\n", base_hash: ''})
  echomsg 'memd: saved ' .. saved.path
endfunction

" Fill a buffer memd://PATH, for reading alone.
function memd#read(name) abort
  try
    let memory = memd#ask('memory.read', #{path: matchstr(a:name, '^memd://\zs.*')})
    call setline(1, split(memory.content, "\n", 1)[:-2])
  catch /^memd:/
    echohl ErrorMsg | echomsg v:exception | echohl None
  endtry
  " No modelines: its text may come from a web page.
  setlocal buftype=nofile noswapfile nomodeline filetype=markdown nomodifiable nomodified
endfunction

function memd#complete(start, line, position) abort
  if a:line =~# '\<Memd\s\+show\s'
    let words = mapnew(memd#ask('memory.list', {}).memories, {_, memory -> memory.path})
  elseif a:line =~# '\<Memd\s\+save\s'
    let words = s:types
  else
    let words = ['save', 'search', 'show']
  endif
  return filter(copy(words), {_, word -> stridx(word, a:start) == 0})
endfunction
