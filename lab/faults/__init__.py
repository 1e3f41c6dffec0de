"""Faults on purpose: each conclusion is seen red for the right reason, and what should not matter is seen not to.

catalogue/*.yaml  the declared table: what a fault does, how it is undone, what must turn red and by which message
catalogue.py      reads and checks it
setups.py         the set-up in which a fault is made, and changes of it
actions.py        applies and reverts one in the running lab; what is applied is recorded, so that a crash loses nothing
suite.py          runs the conclusions and reads what became of them
compare.py        the run beside the table: what turned red unasked, what stayed green, what is red for another reason
check.py          all of that for one fault after another, with progress and resumption
document.py       docs/faults.md
command.py        ``python -m lab fault …``
"""
