# Take shift-clock.sh back, and what libfaketime leaves behind: it shares the time with child processes by an object of shared memory and a
# semaphore named after the process, and a process that ends by exec or a signal removes neither.
rm -f /etc/sudoers.d/faketime /etc/faketime.env
for left in /dev/shm/faketime_shm_* /dev/shm/sem.faketime_sem_*; do
    test -e "$left" && ! kill -0 "${left##*_}" 2>/dev/null && rm -f "$left"
done
true
