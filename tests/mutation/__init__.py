"""Mutation score: each small change of a module that no test notices is a sentence of it that nobody checks.

    PYTHONPATH=tools:tests python -m mutation [--share N] [SUBJECT ...]

changes the modules of `subjects.py` in one place at a time and names every change that survives. `--share N` tries
one in N, always the same ones. The exit status is 1 below the score of `subjects.WANTED`, 2 if there is nothing to
judge by.

It is quick because a change is tried in a fork of a process in which the tests are collected already: the changed
functions are put into the modules that are loaded there (`grafting.py`), only the tests run that touch the changed
lines, and the first that fails ends it (`warm.py`). A change that no test noticed there is tried again in a process
that imports the changed module afresh (`fresh.py`), so that nothing survives only because something was remembered.
"""
