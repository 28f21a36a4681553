#!/bin/sh
# Brings the real clients of `make e2e` into .venv/e2e and nowhere else:
#   vscode-jsonrpc        from npm (needs node and npm)
#   Claude Code           from npm, one program of 380 MB
#   Neovim >= 0.10, nc    Debian packages of trixie with their libraries, unpacked, not installed
# The package source is the one that this machine's apt already uses.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
to="$here/.venv/e2e"
mkdir -p "$to"

if [ ! -d "$to/node_modules/vscode-jsonrpc" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$to" vscode-jsonrpc@10.0.0
fi

case "$(uname -s) $(uname -m)" in
    "Linux x86_64") claude=linux-x64 ;;
    "Linux aarch64") claude=linux-arm64 ;;
    "Darwin arm64") claude=darwin-arm64 ;;
    *) claude= ;;
esac
if [ -n "$claude" ] && [ ! -d "$to/claude" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$to/claude" \
        "@anthropic-ai/claude-code-$claude@2.1.329"
fi

if [ ! -x "$to/unpacked/usr/bin/nvim" ] && command -v apt-get >/dev/null; then
    apt="$to/apt"
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$to/unpacked"
    : > "$apt/status"
    uri=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | head -n 1)
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keyring] $uri trixie main" > "$apt/trixie.list"
    set -- -qq -o "Dir::Etc::sourcelist=$apt/trixie.list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State=$apt/state" -o "Dir::Cache=$apt/cache" \
        -o "Dir::State::status=$apt/status" -o APT::Install-Recommends=false
    apt-get "$@" update
    apt-get "$@" install -y --download-only neovim netcat-openbsd
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$to/unpacked"
    done
fi
