"""`bench` is not installed; it is found from the root of the repository, after everything else."""

from __future__ import annotations

import sys

from architecture.source_tree import ROOT

sys.path.append(str(ROOT))
