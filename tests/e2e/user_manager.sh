#!/bin/sh
# Runs `systemd --user` as another user, in control groups, mounts and processes of its own, with
# nothing of this machine's services. Needs root. Its end is the end of everything that it started.
#   user_manager.sh NAME UID HOME RUNTIME SYSTEMD PATH_NEEDED…
# NAME is of the control groups; the paths are those that the user has to reach (an interpreter in
# somebody's private folder, say), and are shown to it where they are.
set -eu
name=$1 uid=$2 home=$3 runtime=$4 systemd=$5
shift 5
groups=/sys/fs/cgroup
[ "$(stat -f -c %T $groups)" = cgroup2fs ] && kinds=. || kinds="unified systemd"
for kind in $kinds; do
    mkdir "$groups/$kind/$name"
    echo $$ > "$groups/$kind/$name/cgroup.procs"
done
export name uid home runtime systemd kinds groups
exec unshare --mount --cgroup --pid --fork --mount-proc --kill-child -- sh -euc '
    if [ "$kinds" = . ]; then
        mount -t cgroup2 cgroup2 "$groups"
        mine=$groups
    else
        mount -t tmpfs -o mode=755 tmpfs "$groups"
        mkdir "$groups/unified" "$groups/systemd"
        mount -t cgroup2 cgroup2 "$groups/unified"
        mount -t cgroup -o none,name=systemd cgroup "$groups/systemd"
        mine="$groups/unified $groups/systemd"
    fi
    for folder in $mine; do
        chown "$uid" "$folder"
        for file in cgroup.procs cgroup.threads cgroup.subtree_control tasks; do
            [ ! -e "$folder/$file" ] || chown "$uid" "$folder/$file"
        done
    done
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/systemd/system "$runtime" /run/shown
    chmod 700 "$runtime"
    chown "$uid:$uid" "$runtime"
    # A closed folder above a path is replaced by an empty one, in this view of the files alone.
    number=0
    for path in "$@"; do
        closed=
        above=$(dirname "$path")
        while [ "$above" != / ]; do
            setpriv --reuid "$uid" --regid "$uid" --clear-groups test -x "$above" || closed=$above
            above=$(dirname "$above")
        done
        [ -n "$closed" ] || continue
        number=$((number + 1))
        mkdir "/run/shown/$number"
        mount --bind "$path" "/run/shown/$number"
        echo "$number $closed $path" >> /run/shown/list
    done
    if [ -e /run/shown/list ]; then
        cut -d" " -f2 /run/shown/list | sort -u | while read -r closed; do
            mount -t tmpfs -o mode=755 tmpfs "$closed"
        done
        while read -r number closed path; do
            mkdir -p "$path"
            mount --bind "/run/shown/$number" "$path"
        done < /run/shown/list
    fi
    # In the background: as process 1 it would take itself for the system.
    setpriv --reuid "$uid" --regid "$uid" --clear-groups env -i HOME="$home" USER=memd \
        XDG_RUNTIME_DIR="$runtime" PATH=/usr/local/bin:/usr/bin:/bin \
        "$systemd" --user --log-target=console &
    wait $!
' sh "$@"
