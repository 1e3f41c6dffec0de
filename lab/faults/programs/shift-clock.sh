# Let whatever sudo starts from now on see a clock shifted by $1 seconds ("+3600"), by libfaketime (Debian package libfaketime).
# Not sshd: its sandbox bears no preloaded library.
for library in /usr/lib/*/faketime/libfaketime.so.1; do
    test -e "$library" || { echo "libfaketime is not there: apt-get install libfaketime" >&2; exit 1; }
    printf 'LD_PRELOAD=%s\nFAKETIME=%s\n' "$library" "$1" > /etc/faketime.env
    echo 'Defaults env_file=/etc/faketime.env' > /etc/sudoers.d/faketime
done
