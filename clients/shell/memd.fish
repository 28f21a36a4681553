# memd in fish: put this file into ~/.config/fish/conf.d/.

function recall --description 'Search the memories of this project'
    memctl search $argv
end

function remember --description 'Save a statement as a memory: remember [-t TYPE] STATEMENT…'
    argparse --stop-nonopt t/type= -- $argv; or return
    set --query _flag_type; or set --local _flag_type project
    set --local name (string lower -- "$argv" | string replace --all --regex '[^a-z0-9]+' - \
        | string sub --length 60 | string trim --chars=-)
    test -n "$name"; or set name note-(date +%Y%m%d-%H%M%S)
    memctl add --name=$name --type=$_flag_type --description="$argv" --body="$argv"
end

function memd_call --description 'Call a method of memd: memd_call METHOD [JSON]'
    set --query argv[2]; or set argv[2] null
    printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}\n' $argv[1] $argv[2] \
        | if command --query socat
            socat -t 10 - UNIX-CONNECT:(memctl config --socket-path)
        else
            nc -U -N (memctl config --socket-path)
        end
end

complete --command remember --short t --long type --exclusive \
    --arguments 'user feedback project reference'
