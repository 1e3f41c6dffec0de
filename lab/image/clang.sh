#!/bin/sh
# clang in Cilium's image: compiles each datapath program once and keeps the object, as ccache would (which cannot: the agent
# has the object written to standard output). The key is everything that decides the object: the options and the preprocessed
# source, which already has the node's configuration in it. Three nodes compile the same few programs at every start, and that
# is the longest part of it.
cache=/var/cache/servicepath-lab
real=/usr/bin/clang-19
case " $* " in
*" -c "*) [ -d "$cache" ] || exec "$real" "$@" ;;
*) exec "$real" "$@" ;;
esac
work=$(mktemp -d "$cache/.XXXXXX") || exec "$real" "$@"
trap 'rm -rf "$work"' EXIT
# The folders of headers differ by a hash in their names; what is read from them is in the preprocessed source.
for word; do case $word in -I*) ;; *) echo "$word" ;; esac; done >"$work/input"
"$real" "$@" -E -P >>"$work/input" || exit
key=$(sha256sum <"$work/input" | cut -d' ' -f1)
if [ ! -e "$cache/$key.o" ]; then
    "$real" "$@" >"$work/object" || exit
    mv "$work/object" "$cache/$key.o"
fi
cat "$cache/$key.o"
