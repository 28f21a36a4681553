" clients/vim/memd.vim in a real Vim, in a project's directory. MEMD_TEST_EXPECT is a word that some
" memory there has, MEMD_TEST_SAVE a statement to save.
set modeline " off for root

function s:check() abort
  call setline(1, ['above', 'Egrets fish at the weir. vim: set textwidth=7:', 'below'])
  let path = matchstr(execute('2MemdSave egrets fish at the weir'), '\S*\.md')
  MemdSearch egrets weir
  let [found] = getqflist()
  call assert_equal(['memd://' .. path, 'egrets fish at the weir'], [bufname(found.bufnr), found.text])
  cclose
  execute 'edit! memd://' .. path
  call assert_match("\nEgrets fish at the weir\\.", join(getline(1, '$'), "\n"))
  call assert_equal(['markdown', 0], [&filetype, &textwidth]) " a memory sets no option
  %s/fish at/leave/
  write
  call assert_match('leave the weir', system('memctl show ' .. path))
  MemdList
  call assert_equal(1, len(filter(getqflist(), {_, row -> bufname(row.bufnr) ==# 'memd://' .. path})))
  cclose
  MemdUndo
  call assert_match('fish at the weir', system('memctl show ' .. path))
  try
    edit memd://no.md
    call add(v:errors, 'a memory that is not there was opened')
  catch /^Vim.*memd: .*no\.md\|^memd: .*no\.md/
  endtry
  call system('memctl rm ' .. path) " what was only made to be tested goes again
  execute 'MemdSearch' $MEMD_TEST_EXPECT
  call assert_match('^memd://', bufname(getqflist()[0].bufnr))
  enew!
  call setline(1, $MEMD_TEST_SAVE)
  execute '1MemdSave' $MEMD_TEST_SAVE
endfunction

try
  call s:check()
catch
  call add(v:errors, v:exception .. ' at ' .. v:throwpoint)
endtry
if empty(v:errors)
  qall!
endif
enew!
call setline(1, v:errors)
%print
cquit
