#!/bin/sh
# Brings the real clients of `make e2e` into one folder and nowhere else: $MEMD_E2E_PREFIX, or
# .venv/e2e of this checkout. Each has a folder of its own there and is started by bin/NAME:
#   claude 2.1.332, codex 0.171.0, gemini 0.61.0, opencode 1.18.33      npm
#   inspector 2.12.0 (the MCP Inspector), node24 (runs it and gemini)   npm
#   vscode-jsonrpc 10.0.0, and vscode: what clients/vscode is built with  npm, no bin/
#   python with mcp 2.3.0, fastmcp 4.1.2 and python-lsp-jsonrpc 1.1.2   PyPI, in a venv
#   browser-python: playwright 1.65.2; axe-core 4.14.1, no bin/        PyPI in a venv, npm
#   chromium, where /usr/bin has none, with the fonts it needs         Debian bookworm
#   nvim 0.10 and nc                                                    Debian trixie
#   nvim7 (0.7.2), vim, emacs, socat, bash, zsh, fish                     Debian bookworm
#   systemd 252, systemctl, systemd-analyze, where /usr/lib has none       Debian bookworm
# Debian's packages are unpacked with their libraries, not installed; the package source is the
# one that this machine's apt already uses. What cannot be had is named and skipped, here and by
# the tests. What is there stays as it is: remove a folder to have it brought anew.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
to=${MEMD_E2E_PREFIX:-"$here/.venv/e2e"}
mkdir -p "$to/bin"
to=$(cd "$to" && pwd -P)

missing() { echo "install.sh: $1 cannot be had: $2" >&2; }
brings() { echo "install.sh: brings $* into $to" >&2; }

# wrapper NAME LINE: bin/NAME runs the line.
wrapper() {
    printf '#!/bin/sh\n%s\n' "$2" > "$to/bin/$1.new"
    chmod 755 "$to/bin/$1.new"
    mv "$to/bin/$1.new" "$to/bin/$1"
}

# from_npm FOLDER PACKAGE…: npm packages, or what a package.json names, in a folder of their own.
from_npm() {
    [ -d "$to/$1" ] && return 0
    command -v npm >/dev/null || { missing "$2" "there is no npm"; return 1; }
    folder=$1
    shift
    brings "$@" "from npm"
    rm -rf "$to/$folder.new"
    mkdir -p "$to/$folder.new"
    case "$1" in
        */package.json) cp "$1" "$to/$folder.new/" && shift ;;
    esac
    npm install --silent --no-audit --no-fund --prefix "$to/$folder.new" "$@" \
        > "$to/$folder.log" 2>&1 || { missing "$folder" "see $to/$folder.log"; return 1; }
    mv "$to/$folder.new" "$to/$folder"
}

# unpack FOLDER SUITE PACKAGE…: Debian packages of a suite with what they need, below a folder.
unpack() {
    folder=$1 suite=$2
    shift 2
    [ -d "$to/$folder" ] && return 0
    command -v apt-get >/dev/null || { missing "$*" "there is no apt-get"; return 1; }
    brings "$@" "from Debian $suite"
    apt="$to/$folder.apt"
    rm -rf "$apt" "$to/$folder.new"
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$to/$folder.new"
    : > "$apt/status"
    uri=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | head -n 1)
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keyring] $uri $suite main" > "$apt/sources.list"
    options="-qq -o Dir::Etc::sourcelist=$apt/sources.list -o Dir::Etc::sourceparts=- \
        -o Dir::State=$apt/state -o Dir::Cache=$apt/cache -o Dir::State::status=$apt/status \
        -o APT::Install-Recommends=false -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086 - the options are words
    { apt-get $options update && apt-get $options install -y --download-only "$@"; } \
        > "$to/$folder.log" 2>&1 || { missing "$*" "see $to/$folder.log"; return 1; }
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$to/$folder.new"
    done
    rm -rf "$apt"
    mv "$to/$folder.new" "$to/$folder"
}

# unpacked NAME FOLDER PROGRAM [ENVIRONMENT]: bin/NAME runs it with the folder's own libraries.
unpacked() {
    root="$to/$2"
    [ -e "$root/$3" ] || { missing "$1" "$root/$3 is not there"; return 1; }
    loader=$(find "$root" -name 'ld-linux-*.so.*' ! -type d | head -n 1)
    libraries=$(find "$root" -name '*.so.*' -exec dirname {} + | sort -u | tr '\n' ':')
    wrapper "$1" "${4:-} exec $loader --library-path $libraries $root/$3 \"\$@\""
}

# venv FOLDER PACKAGE…: packages of PyPI in a virtual environment of their own.
venv() {
    [ -d "$to/$1" ] && return 0
    folder=$1
    shift
    brings "$@" "from PyPI"
    "${PYTHON:-python3}" -m venv "$to/$folder" && "$to/$folder/bin/pip" install -q \
        --disable-pip-version-check "$@" > "$to/$folder.log" 2>&1 ||
        { missing "$*" "see $to/$folder.log"; rm -rf "${to:?}/$folder"; return 1; }
}

case "$(uname -s) $(uname -m)" in
    "Linux x86_64") claude=linux-x64 ;;
    "Linux aarch64") claude=linux-arm64 ;;
    "Darwin arm64") claude=darwin-arm64 ;;
    *) claude= ;;
esac
if [ -n "$claude" ] && from_npm claude "@anthropic-ai/claude-code-$claude@2.1.332"; then
    # A link, not a wrapper: a process of it is known by the name under which it was started.
    ln -sf "../claude/node_modules/@anthropic-ai/claude-code-$claude/claude" "$to/bin/claude"
fi
from_npm node24 node@24 && wrapper node24 "exec $to/node24/node_modules/node/bin/node \"\$@\""
if unpack trixie trixie neovim netcat-openbsd; then
    unpacked nvim trixie usr/bin/nvim "VIMRUNTIME=$to/trixie/usr/share/nvim/runtime"
    unpacked nc trixie usr/bin/nc.openbsd
fi
from_npm vscode-jsonrpc vscode-jsonrpc@10.0.0
from_npm vscode "$here/clients/vscode/package.json"
from_npm codex @openai/codex@0.171.0 &&
    wrapper codex "exec $to/codex/node_modules/.bin/codex \"\$@\""
run24="PATH=$to/node24/node_modules/node/bin:\$PATH exec"
from_npm gemini @google/gemini-cli@0.61.0 &&
    wrapper gemini "$run24 $to/gemini/node_modules/.bin/gemini \"\$@\""
from_npm opencode opencode-ai@1.18.33 &&
    wrapper opencode "exec $to/opencode/node_modules/.bin/opencode \"\$@\""
if PATH=$to/node24/node_modules/node/bin:$PATH \
    from_npm inspector @modelcontextprotocol/inspector@2.12.0; then
    wrapper inspector "$run24 $to/inspector/node_modules/.bin/mcp-inspector \"\$@\""
fi
venv python mcp==2.3.0 fastmcp==4.1.2 python-lsp-jsonrpc==1.1.2 &&
    wrapper python "exec $to/python/bin/python \"\$@\""
if unpack bookworm bookworm neovim vim emacs-nox socat; then
    unpacked nvim7 bookworm usr/bin/nvim "VIMRUNTIME=$to/bookworm/usr/share/nvim/runtime"
    unpacked vim bookworm usr/bin/vim.basic "VIMRUNTIME=$to/bookworm/usr/share/vim/vim90"
    unpacked socat bookworm usr/bin/socat
    share="$to/bookworm/usr/share/emacs/28.2"
    unpacked emacs bookworm usr/bin/emacs-nox \
        "EMACSDATA=$share/etc EMACSLOADPATH=$(find "$share/lisp" -type d | sort | tr '\n' ':')"
fi
from_npm axe-core axe-core@4.14.1
venv browser playwright==1.65.2 && wrapper browser-python "exec $to/browser/bin/python \"\$@\""
if [ ! -e /usr/bin/chromium ] && unpack chromium bookworm chromium fonts-dejavu-core; then
    libraries=$(find "$to/chromium" -name '*.so*' -exec dirname {} + | sort -u | tr '\n' ':')
    wrapper chromium "LD_LIBRARY_PATH=$libraries exec $to/chromium/usr/lib/chromium/chromium \"\$@\""
fi
if unpack shells bookworm bash zsh fish; then
    unpacked bash shells bin/bash
    unpacked zsh shells bin/zsh
    unpacked fish shells usr/bin/fish
fi
# A user's systemd needs nothing of this machine but its kernel: no D-Bus, and its units are brought.
if [ ! -e /usr/lib/systemd/systemd ] && unpack systemd bookworm systemd; then
    root="$to/systemd"
    loader=$(find "$root" -name 'ld-linux-*.so.*' ! -type d | head -n 1)
    libraries=$(find "$root" -name '*.so*' -exec dirname {} + | sort -u | tr '\n' ':')
    for program in lib/systemd/systemd bin/systemctl usr/bin/systemd-analyze; do
        wrapper "${program##*/}" "SYSTEMD_UNIT_PATH=$root/usr/lib/systemd/user: \
            exec $loader --library-path $libraries $root/$program \"\$@\""
    done
fi
exit 0
