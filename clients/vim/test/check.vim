" Run by test/run inside Vim, in a project's directory, with a daemon at $MEMD_SOCKET.
let s:path = 'egrets-fish-at-the-weir.md'
let s:told = []
set modeline " off for root

function s:qf() abort
  return join(map(getqflist(), {_, item -> bufname(item.bufnr) .. ' ' .. item.text}), "\n")
endfunction

function s:save() abort
  call setline(1, ['above', 'Egrets fish at the weir. vim: set textwidth=7:', 'below'])
  2Memd save reference egrets fish at the weir
  call assert_match('saved ' .. s:path, execute('messages'))
  2Memd save reference egrets fish at the weir
  call assert_match('memd: .*egrets', split(execute('messages'), "\n")[-1])
  if !empty($MEMD_TEST_SAVE)
    call setline(1, $MEMD_TEST_SAVE)
    execute '1Memd save project' $MEMD_TEST_SAVE
    call assert_match('memd: saved ', split(execute('messages'), "\n")[-1])
  endif
endfunction

function s:search() abort
  Memd search egrets weir
  call assert_match('^memd://' .. s:path .. ' .*weir', s:qf())
  if !empty($MEMD_TEST_EXPECT)
    execute 'Memd search' $MEMD_TEST_EXPECT
    call assert_match('^memd://', s:qf())
  endif
endfunction

function s:show() abort
  execute 'Memd show' s:path
  call assert_match("\nEgrets fish at the weir\\.", join(getline(1, '$'), "\n"))
  call assert_equal(['markdown', 0], [&filetype, &textwidth]) " a memory sets no option
  call assert_equal([s:path], getcompletion('Memd show egr', 'cmdline'))
endfunction

function s:refuse() abort
  Memd show no.md
  call assert_match('memd: .*no\.md', split(execute('messages'), "\n")[-1])
endfunction

for s:name in ['save', 'search', 'show', 'refuse']
  let v:errors = []
  try
    call call('s:' .. s:name, [])
  catch
    call add(v:errors, v:exception .. ' at ' .. v:throwpoint)
  endtry
  call add(s:told, (empty(v:errors) ? 'ok ' : 'failed ') .. s:name .. ' ' .. join(v:errors, '; '))
  if !empty(v:errors)
    break
  endif
endfor
call memd#ask('memory.delete', #{path: s:path}) " what was only made to be tested goes again
enew
call setline(1, s:told)
%print
if empty(v:errors)
  qall!
endif
cquit
