" :Memd search WORDS, :Memd show PATH, :[range]Memd save [TYPE] DESCRIPTION
if exists('g:loaded_memd') || !has('channel') || !has('patch-8.2.4684')
  finish
endif
let g:loaded_memd = 1

command -nargs=+ -range -complete=customlist,memd#complete Memd
      \ call memd#run(<q-args>, <line1>, <line2>)

augroup memd
  autocmd!
  autocmd BufReadCmd memd://*.md call memd#read(expand('<amatch>'))
augroup END
