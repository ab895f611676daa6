"""Checks that need separate environments: other Pythons, the built wheel, the long proofs.

The justfile says what a check consists of, this file where it runs. `nox --list` shows the sessions.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
DEVELOPMENT = nox.project.dependency_groups(nox.project.load_toml(ROOT / "pyproject.toml"), "dev")
FUZZ_SECONDS = 600
AXE = "axe-core@4.10.3"  # judges whether pages can be used by everyone
# The versions whose published tests WORKPACKET_SUITES contains, and the packages that those tests need.
OF_THE_SUITE = (
    "langgraph==1.2.11", "langgraph-checkpoint==4.3.2", "pytest-mock>=3.14", "syrupy>=5,<8", "httpx",
    "langgraph-checkpoint-sqlite==3.1.2", "langgraph-checkpoint-postgres==3.2.0",
)  # fmt: skip
MUTATION_SHARE = "8"
IN_PARALLEL = ("--numprocesses=auto", "--dist=worksteal")
PROOF_IN_FULL = ("--hypothesis-profile=proof", "--lists=whole")
SOURCES = (str(ROOT / "tools"), str(ROOT / "tests"))

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "tests", "package"]
nox.options.download_python = "never"
# A Python that is not installed is reported as skipped, even in CI, where nox would make it a failure: the one that
# runs this file is always tested. If that one is not in PYTHONS, every session would be skipped, so it is a failure.
nox.options.error_on_missing_interpreters = "CI" in os.environ and f"3.{sys.version_info.minor}" not in PYTHONS
# uv comes with its own certificates and would refuse those of an inspecting proxy.
os.environ.setdefault("UV_SYSTEM_CERTS", "1")


def install(session: nox.Session) -> None:
    """Install the package in editable mode, and the development tools."""
    session.install("--editable", ".", *DEVELOPMENT)


def just(session: nox.Session, *arguments: str, **environment: str) -> None:
    session.run("just", "--justfile", str(ROOT / "justfile"), *arguments, env=environment)


def run_tests(session: nox.Session, *arguments: str) -> None:
    """Run these tests. Running no test is a failure (pytest's status 5)."""
    install(session)
    session.run("pytest", *arguments)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, formatting, layers and types."""
    install(session)
    just(session, "lint")
    just(session, "types")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The fast tests, on each supported Python that is installed; git is asked each time (tests/git_answers.py)."""
    install(session)
    just(session, "test", *session.posargs, WORKPACKET_TEST_MEMORY="off")


@nox.session
def corpus(session: nox.Session) -> None:
    """The tests that need real documents, in the folder that WORKPACKET_CORPUS names."""
    if "WORKPACKET_CORPUS" not in os.environ:
        session.skip("WORKPACKET_CORPUS is not set")
    run_tests(session, "tests/corpora/real", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The tests of the documentation: links, generated pages, the picture, and every page that a test types."""
    pages = [path for path in ROOT.glob("tests/**/test_*.py") if path.stem.endswith(("_page", "tutorial", "by_hand"))]
    typed = sorted(str(path.relative_to(ROOT)) for path in pages)
    run_tests(session, "tests/docs", "tests/tour", *typed, *IN_PARALLEL, *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """Render the documentation as a site, in a folder outside of git; check its links and its search."""
    session.install("sphinx>=8", "furo", "myst-parser>=4")
    sources, rendered = (ROOT / session.create_tmp() / name for name in ("sources", "site"))
    for folder in (sources, rendered):
        shutil.rmtree(folder, ignore_errors=True)
    program = str(ROOT / "tools" / "docs_site.py")
    session.run("python", program, "lay-out", str(sources))
    session.run("sphinx-build", "--quiet", "--fail-on-warning", "--keep-going", str(sources), str(rendered))
    session.run("python", program, "check", str(rendered))
    session.log(f"the site is in {rendered}")


@nox.session
def servers(session: nox.Session) -> None:
    """All tests that need a server: of the PostgreSQL store, whose contract the fast tests include, and of Temporal."""
    run_tests(session, *(session.posargs or ("tests/postgres", "tests/temporal")))


@nox.session
def langgraph(session: nox.Session) -> None:
    """LangGraph's own tests, run with our saver; they are in the folder that WORKPACKET_SUITES names. Then threads of
    its own savers, taken over.
    """
    if "WORKPACKET_SUITES" not in os.environ and "CI" not in os.environ:
        session.skip("WORKPACKET_SUITES is not set")
    session.install("--editable", ".", *DEVELOPMENT, *OF_THE_SUITE)
    session.run("pytest", "tests/corpora/langgraph_suite", *session.posargs)


@nox.session
def pyright(session: nox.Session) -> None:
    """Pyright infers for an author's program what mypy infers; `just types` checks the same file with mypy."""
    session.install("--editable", ".", "pyright==1.1.414")
    session.run("pyright", "--project", "tests/runtime/pyright.json", *session.posargs)


@nox.session
def gov(session: nox.Session) -> None:
    """Check our own governance documents."""
    install(session)
    session.run("workpacket", "check", *session.posargs)


@nox.session
def approvals(session: nox.Session) -> None:
    """Verify our own approvals and the log against the base: `nox -s approvals -- --base origin/main`."""
    install(session)
    session.run("workpacket", "approvals", "verify", *session.posargs)


@nox.session
def proof(session: nox.Session) -> None:
    """The long proofs, what `just test` leaves out of long lists (tests/long_lists.py), and every property with more
    examples; with WORKPACKET_PROOF=bounded, the share that CI runs.
    """
    run_tests(session, "tests/proof", *IN_PARALLEL, *session.posargs)
    if not session.posargs:
        bounded = os.environ.get("WORKPACKET_PROOF") == "bounded"
        share = ("--hypothesis-profile=fresh", "--lists=fresh") if bounded else PROOF_IN_FULL
        session.run("pytest", "-m", "hypothesis or long or share", *share, *IN_PARALLEL)


@nox.session
def simulate(session: nox.Session) -> None:
    """Play stories of a team for a number of seconds, 600 unless told: `nox -s simulate -- --seed 7 --stories 1`."""
    install(session)
    session.run("python", "-m", "simulation", *session.posargs, env={"PYTHONPATH": os.pathsep.join(SOURCES)})


@nox.session
def mutation(session: nox.Session) -> None:
    """Change the code that judges approvals and resumption in one place at a time: tests must notice 90 % of that.

    One change in eight is tried, always the same ones, in a few minutes. `-- --share 1` tries all of them.
    """
    install(session)
    wanted = session.posargs or ["--share", MUTATION_SHARE]
    session.run("python", "-m", "mutation", *wanted, env={"PYTHONPATH": os.pathsep.join(SOURCES)})


@nox.session
def coverage(session: nox.Session) -> None:
    """Check that nearby tests take every branch of the code that judges approvals, evidence, the log and merges."""
    install(session)
    measured = {"COVERAGE_FILE": str(Path(session.create_tmp()).absolute() / "coverage")}
    tests = (
        "tests/approvals", "tests/corpora/attacks", "tests/lifecycle/test_log_checkpoints.py", "tests/ledger",
        "tests/contract/test_contract.py", "tests/contract/test_contract_drift.py",
        "tests/contract/test_what_counts.py", "tests/contract/test_what_is_proved.py", "tests/judging",
        "tests/lifecycle/test_coverage_rules.py", "tests/lifecycle/test_specification_growth.py",
        "tests/lifecycle/test_change_checks.py", "tests/evidence", "tests/lifecycle/test_landings.py",
        "tests/lifecycle/test_renaming.py",
    )  # fmt: skip
    judging = (f"shell/judging/{name}.py" for name in ("change", "coverage", "landed_work", "merged_tree"))
    lifecycle = (f"lifecycle/{name}.py" for name in ("contract", "contract_drift", "coverage"))
    modules = ("approvals/*", "evidence/*", "ledger/*", *lifecycle, *judging)
    # A module that was renamed would be left out in silence.
    for module in modules:
        if not list(Path("tools/workpacket").glob(module)):
            session.error(f"there is no {module}")
    session.run("coverage", "run", "-m", "pytest", "--quiet", *tests, env=measured)
    session.run("coverage", "combine", "--quiet", env=measured)
    included = ",".join(f"tools/workpacket/{module}" for module in modules)
    whole = (f"--include={included}", "--fail-under=100")
    session.run("coverage", "report", *whole, env=measured)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random input with a new seed each round, for a number of seconds."""
    install(session)
    seconds = int(session.posargs[0]) if session.posargs else FUZZ_SECONDS
    # CI tries a tenth of a round's mutants and signatures.
    bounded = os.environ.get("WORKPACKET_PROOF") == "bounded"
    share = {"WORKPACKET_FUZZ_MUTANTS": "1000", "WORKPACKET_FUZZ_PAGES": "2000"} if bounded else {}
    end = time.monotonic() + seconds
    seed = time.time_ns() % 2**32
    while time.monotonic() < end:
        profile = ("--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}", "--quiet")
        session.run("pytest", "tests/fuzz", *profile, env=share)
        seed += 1


@nox.session
def report(session: nox.Session) -> None:
    """The pages of audit, approvals and the live board in a real browser, which is installed if it is missing."""
    missing = not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    if missing and shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        quietly = {"DEBIAN_FRONTEND": "noninteractive"}
        session.run("apt-get", "update", "-qq", external=True, success_codes=range(256))
        install_it = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium")
        session.run(*install_it, external=True, env=quietly, success_codes=range(256))
    axe = Path(session.create_tmp()).resolve()
    if shutil.which("npm"):
        quiet = ("--silent", "--no-audit", "--no-fund", "--prefix", str(axe))
        session.run("npm", "install", *quiet, AXE, external=True, success_codes=range(256))
    script = axe / "node_modules" / "axe-core" / "axe.min.js"
    session.env["WORKPACKET_AXE"] = str(script) if script.exists() else ""
    # Most of the time is spent waiting for browsers and servers.
    run_tests(session, "tests/browser", "--numprocesses=2", "--dist=loadfile", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against other tools."""
    install(session)
    just(session, "bench", *session.posargs)


@nox.session
def package(session: nox.Session) -> None:
    """Build sdist and wheel twice, install the wheel in every way that the README shows, and play the shortest ways
    from an empty folder with it; then leave out each item of the activation checklist, in both forms.
    """
    session.install("build", "pipx", "uv", "--editable", ".", *DEVELOPMENT)
    folder = ROOT / session.create_tmp()
    wheel = build_twice(session, folder)
    if missing := missing_from(wheel):
        session.error(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    clean = folder / "clean"
    session.run("python", "-m", "venv", "--clear", str(clean))
    programs = clean / ("Scripts" if os.name == "nt" else "bin")
    session.run(str(programs / "python"), "-I", "-m", "pip", "install", "-qq", str(wheel), external=True)
    use(session, str(programs / "workpacket"), folder / "repository")
    install_everywhere(session, wheel, folder)
    played = (
        "tests/setup/test_from_nothing.py",
        "tests/shell/approvals/test_shortest_paths.py",
        "tests/lifecycle/test_both_forms.py",
    )
    session.run("pytest", "-rP", *played, env={"WORKPACKET_PROGRAMS": str(programs)})


@nox.session
def release(session: nox.Session) -> None:
    """Make what a release publishes, in build/release: wheel, sdist, bill of materials (CycloneDX) and checksums."""
    session.install("build", "cyclonedx-bom", "pip")
    folder, found = ROOT / session.create_tmp(), ROOT / "build" / "release"
    shutil.rmtree(found, ignore_errors=True)
    wheel = build_twice(session, folder)
    shutil.copytree(wheel.parent, found)
    clean = folder / "installed"
    session.run("python", "-m", "venv", "--clear", "--without-pip", str(clean))
    python = str(clean / ("Scripts" if os.name == "nt" else "bin") / "python")
    session.run("python", "-m", "pip", "--python", python, "install", "-qq", str(wheel))
    materials = str(found / "workpacket.cdx.json")
    options = ("--output-reproducible", "--of", "JSON", "--pyproject", "pyproject.toml", "--output-file", materials)
    session.run("cyclonedx-py", "environment", *options, python)
    for part in (("materials", materials), ("checksums", str(found))):
        session.run("python", str(ROOT / "tools" / "release.py"), *part)


@nox.session
def lowest(session: nox.Session) -> None:
    """The fast tests, or those that are named, with the oldest dependencies that pyproject.toml allows."""
    oldest = ("--resolution", "lowest-direct")
    session.run_install("uv", "pip", "install", "--quiet", *oldest, ".", external=True)
    frozen = session.run("uv", "pip", "freeze", "--exclude-editable", silent=True, external=True) or ""
    # Not in the session's temporary folder: that is inside this repository, and would be that of the tests too.
    constraints = Path(session.virtualenv.location) / "lowest.txt"
    constraints.write_text("".join(f"{line}\n" for line in frozen.splitlines() if "==" in line), "utf-8")
    session.install("--editable", ".", *DEVELOPMENT, "--constraint", str(constraints))
    session.run("pytest", *IN_PARALLEL, *(session.posargs or ("@tests/fast.txt",)))


def build_twice(session: nox.Session, folder: Path) -> Path:
    """Return the wheel. Both archives must have the same bytes when built elsewhere, later and with another umask."""
    found: list[dict[str, bytes]] = []
    for name, mask in (("dist", 0o022), ("again", 0o077)):
        built, sources = folder / name, folder / f"sources-{name}"
        for path in (built, sources):
            shutil.rmtree(path, ignore_errors=True)
        before = os.umask(mask)
        try:
            session.run("git", "clone", "--quiet", str(ROOT), str(sources), external=True)
        finally:
            os.umask(before)
        session.run("python", "-m", "build", "--outdir", str(built), str(sources))
        found.append({path.name: path.read_bytes() for path in built.iterdir()})
    if found[0] != found[1]:
        session.error("built twice from one commit, the archives differ")
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def install_everywhere(session: nox.Session, wheel: Path, folder: Path) -> None:
    """Install from a file, a git URL and an index, with uv and pipx; then install what a written workflow names."""
    places = {"UV_TOOL_DIR": "uv", "UV_TOOL_BIN_DIR": "uv-bin", "PIPX_HOME": "pipx", "PIPX_BIN_DIR": "pipx-bin"}
    env = {key: str(folder / name) for key, name in places.items()}
    for path in env.values():
        shutil.rmtree(path, ignore_errors=True)
    by_uv, by_pipx = str(folder / "uv-bin" / "workpacket"), str(folder / "pipx-bin" / "workpacket")
    fresh = ("--force", "--reinstall-package", "workpacket")
    session.run("uv", "tool", "install", "--quiet", *fresh, str(wheel), env=env)
    session.run(by_uv, "--version", external=True)
    session.run("uvx", "--quiet", "--from", str(wheel), "workpacket", "--version", env=env)
    session.run("pipx", "install", "--quiet", str(wheel), env=env)
    session.run(by_pipx, "--version", external=True)
    source = f"git+{ROOT.as_uri()}"
    session.run("uvx", "--quiet", "--from", source, "workpacket", "--version", env=env)
    session.run("pipx", "install", "--quiet", "--force", source, env=env)
    session.run(by_pipx, "--version", external=True)
    session.run("uv", "tool", "install", "--quiet", *fresh, source, env=env)
    session.run(by_uv, "--version", external=True)
    session.run(
        by_uv, "init", "--workflow", external=True, success_codes=[2]
    )  # a path on this machine, which CI cannot install
    with serving(wheel) as index:
        session.run("uv", "tool", "install", "--quiet", *fresh, "--index", index, "workpacket", env=env)
        repository = folder / "with-workflow"
        shutil.rmtree(repository, ignore_errors=True)
        session.run("git", "init", "--quiet", str(repository), external=True)
        with session.chdir(repository):
            session.run(by_uv, "init", "--workflow", "--pre-commit", external=True)
        text = (repository / ".github" / "workflows" / "workpacket.yml").read_text("utf-8")
        (requirement,) = (line.split('"')[1] for line in text.splitlines() if "WORKPACKET:" in line)
        again = folder / "as-the-workflow"
        session.run("python", "-m", "venv", "--clear", str(again))
        programs = again / ("Scripts" if os.name == "nt" else "bin")
        install = ("-m", "pip", "install", "-qq", "--extra-index-url", index, "--", requirement)
        session.run(str(programs / "python"), *install, external=True)
        session.run(str(programs / "workpacket"), "--version", external=True)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class has
        """Log nothing: this index is asked for every dependency, and has only one package."""


@contextmanager
def serving(wheel: Path) -> Iterator[str]:
    """Serve an index that has only this wheel, on a local port."""
    root = wheel.parent.parent / "index"
    project = root / "simple" / "workpacket"
    shutil.rmtree(root, ignore_errors=True)
    project.mkdir(parents=True)
    shutil.copy(wheel, project)
    (project / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>', "utf-8")
    handler = partial(QuietHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple/"
        finally:
            server.shutdown()


def use(session: nox.Session, workpacket: str, repository: Path) -> None:
    """Check that the command prints its version, and that `check` accepts a good document and refuses a bad one."""
    pointer = repository / ".GOV" / "roles_shared" / "SPEC_CURRENT.md"
    pointer.parent.mkdir(parents=True, exist_ok=True)
    repository.joinpath("spec.md").touch()
    session.run("git", "init", "--quiet", str(repository), external=True)
    session.run(workpacket, "--version", external=True)
    with session.chdir(repository):
        pointer.write_text("# SPEC_CURRENT\n\nCurrent spec: **spec.md**\n", "utf-8")
        session.run(workpacket, "check", external=True)
        pointer.write_text("# SPEC_CURRENT\n", "utf-8")
        session.run(workpacket, "check", external=True, success_codes=[1])


def missing_from(wheel: Path) -> set[str]:
    """Return the modules, data files and schemas that are in the source tree but not in the wheel."""
    package, schemas = ROOT / "tools" / "workpacket", ROOT / "schemas"
    expected = {f"workpacket/{path.relative_to(package).as_posix()}" for path in package.rglob("*") if is_source(path)}
    expected |= {f"workpacket/schemas/{path.relative_to(schemas).as_posix()}" for path in schemas.rglob("*.json")}
    return expected - set(zipfile.ZipFile(wheel).namelist())


def is_source(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc"
