#!/bin/sh
# What both CI examples run: one night, with the nights before it from the CI's cache; then the reports where the CI picks them up.
#
#   SERVICEPATH_STATE       folder of the nights, which the CI keeps from run to run (default: state)
#   SERVICEPATH_INVENTORY   the inventory (default: inventory.yaml)
#   SERVICEPATH_WEBHOOK     optional, a secret: who is told
#   arguments               go to pytest
#
# Exit status: 0 held, 3 could not be seen, 4 broken, 2 wrong use, 75 another run is at it.
set -eu
cd "$(dirname "$0")/.."
state=${SERVICEPATH_STATE:-state}
python=${PYTHON:-.venv/bin/python}
[ -x "$python" ] || make .venv/.ready

case " $* " in
*" --replay="*) inventory= ;;
*) inventory=--inventory=${SERVICEPATH_INVENTORY:-inventory.yaml} ;;
esac
status=0
"$python" -m servicepath.nightly --state="$state" ${inventory:+"$inventory"} --keep-nights=7 --keep-mb=300 --wait=600 -- "$@" || status=$?

mkdir -p reports
case $status in
2 | 75) latest= ;; # no night was begun; the reports of an earlier one are not this run's
*) latest=$(ls "$state/nights" | sort | tail -n 1) ;;
esac
for file in report.html comparison.html junit.xml facts.json pytest.log; do
    rm -f "reports/$file"
    if [ -n "$latest" ] && [ -e "$state/nights/$latest/$file" ]; then cp "$state/nights/$latest/$file" reports/; fi
done
if [ -e "$state/history.html" ]; then cp "$state/history.html" reports/; fi
exit "$status"
