# Stop the process whose id is in the file $1 for half a second of every second.
while true; do
    kill -STOP "$(cat "$1")"
    sleep 0.5
    kill -CONT "$(cat "$1")"
    sleep 0.5
done
