# Short names for common tasks. `python3 tools/just.py RECIPE` sets up .venv, then runs the recipe with the programs of
# .venv on the PATH, where all recipes expect their tools. Arguments are passed on as "$@", never pasted into
# a command line.

set positional-arguments

[doc('List the recipes')]
[private]
default:
    @"{{ just_executable() }}" --justfile "{{ justfile() }}" --list

[doc('Play the whole life of a work packet in a scratch repository; --fast without pauses')]
[group('start')]
tour *arguments:
    @python -m guided_tour "$@"

[doc('Make an example repository to explore, light or full, in FOLDER or a temporary one')]
[group('start')]
example form *folder:
    @python -m guided_tour.examples "$@"

[doc('Play the tour without pauses, and draw docs/tour.svg')]
[group('quality')]
record:
    @python -m guided_tour --fast --record docs/tour.svg

[doc('Check documents: paths, or the whole repository')]
[group('start')]
check *arguments:
    @workpacket check "$@"

[doc('Explain a reason code')]
[group('start')]
explain *arguments:
    @workpacket explain "$@"

# tests/fast.txt leaves out tests that `nox -s docs servers` runs: pages whose commands are typed, and servers that
# are stopped and restarted.
[doc('Run the fast tests, or those named by the arguments, which are passed to pytest')]
[group('quality')]
test *arguments:
    @test $# -gt 0 || set -- @tests/fast.txt; python -m pytest --numprocesses=auto --dist=worksteal "$@"

[doc('Run the tests on every Python found here, the corpus and the proofs')]
[group('quality')]
test-all *arguments:
    @python -m nox --session tests corpus docs servers package proof fuzz -- "$@"

[doc('Lint; check formatting, layers and English')]
[group('quality')]
lint:
    @ruff check
    @ruff format --check
    @lint-imports
    @python tools/plain_english.py

[doc('Check the types, strictly')]
[group('quality')]
types *arguments:
    @mypy "$@"

[doc('Write everything that is generated: reference pages, schemas, protocols, recipes, digests')]
[group('quality')]
reference:
    @python tools/reference.py

# Formatted before, because ruff does not fix a long line that the formatter would break, and after, because of its fixes.
[doc('Format the code and repair what can be repaired safely')]
[group('quality')]
fmt-code *arguments:
    @ruff format "$@"
    @ruff check --fix "$@"
    @ruff format --quiet "$@"

[doc('Count lines, functions and imported modules of the package; --rev REV counts a commit')]
[group('quality')]
count *arguments:
    @python tools/count.py "$@"

[doc('Measure against other tools, or with --compare REV against another revision; --help')]
[group('proof')]
bench *arguments:
    @python -m bench "$@"

[doc('Measure in a minute whether anything is slower than the recorded figures; --land records new ones')]
[group('proof')]
bench-quick *arguments:
    @python -m bench.quick "$@"

[doc('Run the next part of the long proofs in full; .ci/nightly --help')]
[group('proof')]
nightly *arguments:
    @python -m bench.nightly "$@"

[doc('Prove crash safety: kills, lost writes, full disks')]
[group('proof')]
proof *arguments:
    @python -m nox --session proof -- "$@"

[doc('Feed random input for SECONDS, 600 unless told')]
[group('proof')]
fuzz *seconds:
    @python -m nox --session fuzz -- "$@"

[doc('Test the documentation: links, generated pages, and every page whose commands are typed')]
[group('release')]
docs *arguments:
    @python -m nox --session docs -- "$@"

[doc('Draw the pictures of the README from the board of this repository, in Chromium')]
[group('release')]
pictures:
    @PYTHONPATH=tests python -m browser.readme_pictures

[doc('Render the documentation as a site, and check its links and search')]
[group('release')]
site:
    @python -m nox --session site

[doc('Build wheel and sdist and try the wheel in a clean environment')]
[group('release')]
package *arguments:
    @python -m nox --session package -- "$@"

[doc('Everything that must hold before a merge, as CI runs it')]
[group('release')]
ci:
    @.ci/run

[doc('Run nox sessions by name')]
[group('release')]
nox *sessions:
    @python -m nox --session "$@"

# The recipes of group 'governance' have the names that people know from other repositories: create-task-packet,
# record-refinement, record-signature, gate-check and so on.

import '.GOV/gov.just'
