" Vim's own channels, unchanged: JSON-RPC with headers over memd's socket.
let s:channel = ch_open('unix:' .. $E2E_SOCKET, #{mode: 'lsp', timeout: 10000})

function s:call(method, params)
  return ch_evalexpr(s:channel, #{method: a:method, params: json_decode(a:params)})
endfunction

let s:seen = #{
      \ recalled: s:call('prefetch', $E2E_RECALL).result.block,
      \ refused: s:call('memory.read', $E2E_ABSENT).error.code,
      \ saved: s:call('memory.write', $E2E_SAVE).result.path }
call writefile([json_encode(s:seen)], '/dev/stdout')
call ch_close(s:channel)
quitall!
