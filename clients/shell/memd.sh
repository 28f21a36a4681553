# memd in bash and zsh: source this file from ~/.bashrc or ~/.zshrc.

# recall WORDS…: search the memories of this project.
recall() { memctl search "$@"; }

# remember [-t TYPE] STATEMENT…: save a statement as a memory of this project. The type is user,
# feedback, project (unless another is given) or reference.
remember() {
    local type=project name
    if [ "$1" = -t ]; then
        type=$2
        shift 2
    fi
    name=$(printf %s "$*" | LC_ALL=C tr 'A-Z' 'a-z' | LC_ALL=C tr -cs 'a-z0-9' '-' | cut -c 1-60)
    name=${name#-}
    name=${name%-}
    memctl add --name="${name:-note-$(date +%Y%m%d-%H%M%S)}" --type="$type" \
        --description="$*" --body="$*"
}

# memd_call METHOD [PARAMS]: call a method of memd's protocol over its socket, with socat or nc.
# PARAMS are JSON; the answer is one line of JSON.
#     memd_call memory.search "{\"cwd\": \"$PWD\", \"query\": \"release\"}"
memd_call() {
    local params=${2-} address
    address=$(memctl config --socket-path)
    printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}\n' "$1" "${params:-null}" |
        if command -v socat >/dev/null; then
            socat -t 10 - "UNIX-CONNECT:$address"
        else
            nc -U -N "$address"
        fi
}
