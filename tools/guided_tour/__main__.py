"""`python -m guided_tour [--fast] [--record FILE]`.

`--fast` leaves out the pauses; it is the default in CI and where the output is not a terminal. `--record` draws
docs/tour.svg.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from guided_tour.stage import Stage, WentWrong
from guided_tour.story import play

ENVIRONMENT_FAULT = 6
NEEDED = {
    "git": "install git (https://git-scm.com)",
    "ssh-keygen": "install OpenSSH's client (Debian, Ubuntu: apt install openssh-client)",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="just tour", description="The whole life of a work packet, in a minute.")
    parser.add_argument("--fast", action="store_true", help="without pauses")
    parser.add_argument("--record", type=Path, metavar="FILE", help="draw what was seen into FILE, an SVG")
    arguments = parser.parse_args()
    for program, remedy in NEEDED.items():
        if shutil.which(program) is None:
            return stop(f"{program} is missing; {remedy} and run this again")
    if os.name == "nt":
        return stop("the tour needs a pseudo-terminal, which Windows does not have; run it under WSL")
    fast = arguments.fast or not sys.stdout.isatty() or "CI" in os.environ
    stage = Stage.in_folder(Path(tempfile.mkdtemp(prefix="workpacket-tour-")), fast=fast)
    try:
        play(stage)
    except WentWrong as fault:
        return stop(f"{fault}\nthe repository is in {stage.root}", 1)
    if arguments.record:
        from guided_tour.drawing import drawn

        arguments.record.write_text(drawn(stage.pictures, stage.scratch), "utf-8")
    else:
        print("\nTo type workpacket yourself: . .venv/bin/activate && workpacket --help")
    return 0


def stop(message: str, status: int = ENVIRONMENT_FAULT) -> int:
    sys.stderr.write(f"tour: {message}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
