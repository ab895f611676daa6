"""Find, create, test and use keys: those with which people approve, and those that sign the events of a command.

Of an approval key, only the public half is read. The private key, its passphrase and its token are left to OpenSSH and
the person at the terminal. Signatures are made by the person's own `ssh-keygen`: arguments are lists and never pass
through a shell, and the message is passed on standard input.

An event key identifies who typed a command. It has no passphrase, belongs to one person on one machine or to one agent,
and is kept among the person's settings, never in a repository. If the policy of the base names actors, a command
without a key of the actor is refused before it writes; otherwise, an event is signed if a key with its actor's name
exists.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from workpacket.approvals.keys import PublicKey, read_key_fields
from workpacket.approvals.sshsig import NAMESPACE, check_signature, read_signature, unarmor
from workpacket.git.run import run_program
from workpacket.model.canonical import Json
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import Actor, LogEvent, encode_event, event_id, event_of
from workpacket.model.plan import Plan
from workpacket.problem import Problem, WorkpacketError
from workpacket.shell.base import approving_keys, judging_commit, revoked_keys, settings_folder
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.git.repository import Repository


# The status reported for a program that was stopped because it waited for someone.
WAITED = -1


def find_ssh_keygen() -> str:
    """Return the path of the tool; raise an error if it is missing or if someone else may have put it there.

    The program receives the person's passphrase and, with an event key, the right to sign.
    """
    tool = _in_path("ssh-keygen")
    if tool is None:
        raise WorkpacketError(
            "ssh_keygen_missing",
            "ssh-keygen was not found; it is required for signing",
            hint="Install OpenSSH 8.2 or later, for example with `apt install openssh-client`; verification works "
            "without it",
        )
    doubt = _doubt(Path(tool).absolute())
    if doubt:
        hint = "put the folder that contains OpenSSH first in PATH"
        raise WorkpacketError("ssh_keygen_doubtful", f"{tool} is not used: {doubt}", hint=hint, path=tool)
    return tool


def _in_path(program: str) -> str | None:
    """Return the path of the program that a shell would start."""
    if os.name == "nt":
        import shutil  # a claim would spend a tenth of its time on importing it

        return shutil.which(program)
    folders = os.environ.get("PATH", os.defpath)
    places = (os.path.join(folder, program) for folder in folders.split(os.pathsep)) if folders else ()
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def work_tree_here() -> Path | None:
    """Return the top of the work tree that contains the current folder."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)


def _doubt(tool: Path) -> str:
    """Return why the program might not be from OpenSSH; '' if there is no doubt."""
    work_tree = work_tree_here()
    for path in dict.fromkeys((tool, tool.resolve())):
        for folder in path.parents:
            if folder == work_tree:
                return f"it is in the work tree {folder}"
        for place in (path, *path.parents) if os.name != "nt" else ():
            writer = _other_writer(place.stat())
            # With the sticky bit set, others can add files but not replace them.
            sticky = place.stat().st_mode & stat.S_ISVTX and place not in {path, path.parent}
            if writer and not sticky:
                return f"{writer} can write to {place}"
    return ""


# The owner of root's files in a container that does not map root's account.
_UNMAPPED = 65534


def _other_writer(status: os.stat_result) -> str:
    """Return who, besides this account and root, may change a file or folder; '' if no one else may.

    Many systems give folders to a group without other members, so write permission for the group alone does not count.
    """
    if status.st_mode & stat.S_IWOTH:
        return "everyone"
    own = {0, os.getuid(), _UNMAPPED}
    if status.st_uid not in own:
        return f"the account {_account(status.st_uid)}"
    if not status.st_mode & stat.S_IWGRP:
        return ""
    import grp
    import pwd

    try:
        named = set(grp.getgrgid(status.st_gid).gr_mem)
    except KeyError:
        named = set()
    accounts = pwd.getpwall()
    ours = {account.pw_name for account in accounts if account.pw_uid in own}
    members = named | {account.pw_name for account in accounts if account.pw_gid == status.st_gid}
    other = min(members - ours, default="")
    return f"the account {other}, by its group," if other else ""


def _account(identity: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(identity).pw_name
    except KeyError:
        return str(identity)


def sign(message: bytes, key: str, namespace: str = NAMESPACE) -> bytes:
    """Return the SSHSIG blob with the key's signature over the message.

    `key` is the path of a private key, or of a public key whose private half is held by an agent or a token. The tool
    asks for passphrase, PIN and touch in the person's terminal, so its output is not captured. The signature is
    verified before it is returned, so that nothing is written that a gate would refuse.
    """
    command = [find_ssh_keygen(), "-q", "-Y", "sign", "-n", namespace, "-f", key]
    status, output = run_openssh(command, message, in_terminal=True)
    if status != 0:
        raise WorkpacketError(
            "signing_failed",
            f"ssh-keygen failed to sign with {key} (status {status})",
            hint="See the message from ssh-keygen above; check the path and the passphrase, and whether the token "
            "was touched",
            path=key,
        )
    usable = _usable(output.decode("ascii", "replace").replace("\r\n", "\n"), message, namespace)
    if isinstance(usable, Problem):
        raise WorkpacketError(
            "signing_key_unfit", f"signatures by {key} are not valid here: {usable.message}", path=key
        )
    return usable


def run_openssh(
    command: list[str],
    message: bytes = b"",
    *,
    in_terminal: bool = False,
    environment: Mapping[str, str] | None = None,
    patience: float = 86_400.0,
) -> tuple[int, bytes]:
    """Return the status and output of an OpenSSH program. Unless `in_terminal`, it has no terminal to prompt in."""
    if in_terminal:
        import subprocess

        # A list, and the program is the one that the person has in PATH.
        done = subprocess.run(command, input=message, stdout=subprocess.PIPE, check=False)  # noqa: S603
        return done.returncode, done.stdout
    try:
        # OpenSSH asks at the terminal of its session, whatever its standard input is.
        inherited = os.environ if environment is None else environment
        status, output, _ = run_program(command, inherited, message, patience, new_session=True)
    except TimeoutError:
        return WAITED, b""
    return status, output


def _usable(armored: str, message: bytes, namespace: str) -> bytes | Problem:
    """Return the signature, if a gate would accept it."""
    blob = unarmor(armored)
    if isinstance(blob, Problem):
        return blob
    signature = read_signature(blob, namespace)
    if isinstance(signature, Problem):
        return signature
    return check_signature(signature, message) or blob


KEY_VARIABLE = "WORKPACKET_KEY"


class OwnKey(Value):
    """A key of this person. `path` is the file that ssh-keygen uses to sign."""

    path: str
    public: PublicKey


def default_path() -> Path:
    return Path(os.environ.get(KEY_VARIABLE) or Path.home() / ".ssh" / "workpacket_approval")


def touch_key_path() -> Path:
    """Return the path where `key init --browser` writes the public half of a key; the other half is on the token."""
    return Path.home() / ".ssh" / "workpacket_touch.pub"


def write_public_key(path: Path, line: str) -> None:
    """Write the whole line or, if the process is killed, no file with this name."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(f"{line}\n", "utf-8")
    unfinished.replace(path)


def find_key(named: str = "") -> OwnKey:
    """Return the given key; otherwise the one in the environment, or the one that `key init` creates."""
    path = Path(named) if named else default_path()
    public = path if path.suffix == ".pub" else Path(f"{path}.pub")
    try:
        line = public.read_text("utf-8", "replace")
    except OSError as error:
        raise WorkpacketError(
            "approval_key_missing",
            f"the public key cannot be read: {error.strerror}",
            hint=f"create one with `workpacket key init`, or specify yours: --key PATH, or {KEY_VARIABLE}",
            path=str(public),
        ) from error
    fields = line.split()
    try:
        return OwnKey(str(path), read_key_fields(*fields[:2]))
    except (WorkpacketError, TypeError) as fault:
        reason = fault.message if isinstance(fault, WorkpacketError) else "it does not contain a key"
        raise WorkpacketError("signing_key_unfit", f"{public} cannot approve: {reason}", path=str(public)) from fault


def make_key(path: Path, comment: str) -> OwnKey:
    """Create a key in a file, protected by a passphrase that ssh-keygen asks for in the person's terminal."""
    tool = find_ssh_keygen()
    if path.exists() or Path(f"{path}.pub").exists():
        raise WorkpacketError(
            "key_exists",
            "the file already exists",
            hint="specify a different file: workpacket key init PATH",
            path=str(path),
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    status, _ = run_openssh([tool, "-q", "-t", "ed25519", "-C", comment, "-f", str(path)], in_terminal=True)
    if status != 0 or not path.exists():
        raise WorkpacketError("signing_failed", f"ssh-keygen did not create a key (status {status})", path=str(path))
    if has_no_passphrase(tool, path):
        path.unlink()
        Path(f"{path}.pub").unlink(missing_ok=True)
        raise WorkpacketError(
            "key_without_passphrase",
            "no passphrase was given, so any program running under this account could have used the key to approve; "
            "the key was deleted",
            hint="run the command again and give a passphrase",
        )
    return find_key(str(path))


def has_no_passphrase(tool: str, path: Path) -> bool:
    status, _ = run_openssh([tool, "-y", "-P", "", "-f", str(path)])
    return status == 0


def signers_line(principal: str, key: PublicKey) -> str:
    """Return the line for allowed_signers that lets the person approve with this key."""
    from workpacket.approvals.fields import encode_base64

    return f'{principal} namespaces="{NAMESPACE}" {key.kind} {encode_base64(key.blob)}'


# Every gate refuses signatures in this namespace.
TRIAL_NAMESPACE = "workpacket-key-doctor@v1"
_TRIAL = b"A trial by `workpacket key doctor`. It approves nothing.\n"
# A token waits longer than this for its touch, and an agent for its confirmation.
PATIENCE = 3.0

# From the least effort to the best protection.
LADDER = (
    "Use a key only for approvals, with a passphrase, and never add it to an agent: `workpacket key init` creates one.",
    "If the key must be in an agent, have the agent ask each time: `ssh-add -c KEY`.",
    "Approve from an account or a machine where no agent works.",
    (
        'Use a FIDO token (`ssh-keygen -t ed25519-sk -O verify-required`), and set `hardware = "touch"` or "pin" '
        "for gates."
    ),
)

Place = Literal["agent", "file"]


class Trial(Value):
    """One key, where it was found (the path, if it is in a file), and whether it signed without asking."""

    key: PublicKey
    place: Place
    path: str
    signed: bool


class Diagnosis(Value):
    """The result of all trials. `exposed` are the keys that may approve and that any program running under this account
    can use.
    """

    trials: tuple[Trial, ...]
    exposed: tuple[Trial, ...]

    @property
    def sentence(self) -> str:
        return f"an agent on this account could approve: {'YES' if self.exposed else 'NO'}"

    @property
    def remedies(self) -> tuple[str, ...]:
        return LADDER if self.exposed else ()


def examine(key_files: Iterable[str], approving: frozenset[bytes] | None, patience: float = PATIENCE) -> Diagnosis:
    """Test the agent's keys and these private keys.

    `approving` are the blobs of the keys that allowed_signers trusts; None, in a repository without that list, means
    that every key counts.
    """
    tool = find_ssh_keygen()
    trials = (*_try_agent(tool, patience), *_try_files(tool, key_files, patience))
    counts = (trial for trial in trials if approving is None or trial.key.blob in approving)
    return Diagnosis(trials, tuple(trial for trial in counts if trial.signed))


def private_keys(folder: str) -> tuple[str, ...]:
    """Return the files in `folder` (usually `~/.ssh`) that look like private keys."""
    paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder))) if os.path.isdir(folder) else ()
    return tuple(path for path in paths if _begins_as_private_key(path))


def _begins_as_private_key(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            first = file.readline(100)
    except OSError:
        return False
    return first.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in first


def _try_agent(tool: str, patience: float) -> Iterator[Trial]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="workpacket-") as folder:
        # Alone in its folder, the public key can be matched only by the agent, not by a private key next to it.
        path = os.path.join(folder, "key.pub")
        for line in _agent_lines():
            key = _read_line(line)
            if key is not None:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(line + "\n")
                yield Trial(key, "agent", "", _signs(tool, path, patience, with_agent=True))


def _agent_lines() -> list[str]:
    import shutil

    tool = shutil.which("ssh-add")
    if tool is None:
        return []
    status, output = run_openssh([tool, "-L"], patience=PATIENCE)
    return output.decode("utf-8", "replace").splitlines() if status == 0 else []


def _try_files(tool: str, paths: Iterable[str], patience: float) -> Iterator[Trial]:
    for path in paths:
        key = _read_line(_public_line(tool, path))
        if key is not None:
            yield Trial(key, "file", path, _signs(tool, path, patience, with_agent=False))


def _public_line(tool: str, private: str) -> str:
    """Return the line from the public key file; otherwise the one from the private key, if it has no passphrase."""
    try:
        with open(private + ".pub", encoding="utf-8", errors="replace") as file:
            return file.readline().rstrip("\n")
    except OSError:
        _, output = run_openssh([tool, "-y", "-P", "", "-f", private])
        return output.decode("utf-8", "replace").rstrip("\n")


def _read_line(line: str) -> PublicKey | None:
    """Return the key in a line of a `.pub` file, if keys of its type may approve."""
    kind, _, rest = line.partition(" ")
    try:
        return read_key_fields(kind, rest.partition(" ")[0])
    except WorkpacketError:
        return None


def _signs(tool: str, path: str, patience: float, *, with_agent: bool) -> bool:
    """Whether the key signs for a process that has no terminal and shows no dialog."""
    hidden = {"DISPLAY", "SSH_ASKPASS"} if with_agent else {"DISPLAY", "SSH_ASKPASS", "SSH_AUTH_SOCK"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["SSH_ASKPASS_REQUIRE"] = "never"
    command = [tool, "-q", "-Y", "sign", "-n", TRIAL_NAMESPACE, "-f", path]
    status, _ = run_openssh(command, _TRIAL, environment=environment, patience=patience)
    return status == 0


EVENT_KEY_VARIABLE: Final = "WORKPACKET_EVENT_KEY"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@")
_PRIVATE: Final = 0o077


def keys_folder() -> Path:
    return settings_folder() / "event-keys"


def key_path(name: str) -> Path:
    """Return the path of an actor's event key; characters not allowed in file names are written as `%XX`."""
    safe = "".join(
        each if each in _PLAIN else "".join(f"%{byte:02X}" for byte in each.encode("utf-8", "surrogatepass"))
        for each in name
    )
    return keys_folder() / (f"%2E{safe[1:]}" if safe.startswith(".") else safe)


def make_event_key(name: str, kind: Literal["event", "agent"], path: Path | None = None) -> OwnKey:
    """Create a key without a passphrase, readable only by its owner; its comment states its purpose."""

    found = path or key_path(name)
    if found.exists() or Path(f"{found}.pub").exists():
        hint = "it is already in use; specify a different file to create a second key"
        raise WorkpacketError("key_exists", "a file with that name exists", hint=hint, path=str(found))
    _require_outside(found)
    found.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    comment = f"workpacket {kind} key of {name}"
    status, _ = run_openssh(
        [find_ssh_keygen(), "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(found)], in_terminal=True
    )
    if status != 0 or not found.exists():
        raise WorkpacketError("signing_failed", f"ssh-keygen did not create a key (status {status})", path=str(found))
    if os.name != "nt":
        found.chmod(0o600)
    return find_key(str(found))


def _require_outside(path: Path) -> None:
    """Refuse a path in the work tree, where an event key would sooner or later be committed."""

    top = work_tree_here()
    if top is not None and top.resolve() in path.resolve().parents:
        raise WorkpacketError(
            "event_key_in_repository",
            f"the event key {path} is in the work tree {top}; a key that everyone can read proves nothing",
            hint="store it elsewhere: workpacket key init --event creates one in your settings folder",
            path=str(path),
        )


def own_keys() -> Iterator[Path]:
    """Yield the event keys of this account: the one in the environment or, if there is none, all keys in the settings
    folder."""
    named = os.environ.get(EVENT_KEY_VARIABLE)
    if named:
        yield Path(named)
        return
    folder = keys_folder()
    if folder.is_dir():
        yield from sorted(each.with_suffix("") if each.suffix == ".pub" else each for each in folder.glob("*.pub"))


def usable_names(actors: Actors) -> tuple[str, ...]:
    """Return the names that the keys of this account may use."""
    keys = [_fingerprint(path) for path in own_keys()]
    return tuple(dict.fromkeys(name for key in keys for name in actors.names_by_key.get(key, ())))


def _fingerprint(path: Path) -> str:
    try:
        return find_key(str(path)).public.fingerprint
    except WorkpacketError:
        return ""


def key_of(actor: Actor, actors: Actors) -> Path | None:
    """Return the key that signs for the actor; None if the actor has none and the policy does not require one."""
    named = os.environ.get(EVENT_KEY_VARIABLE)
    if not actors.present:
        path = Path(named) if named else key_path(actor.id)
        return path if named or path.exists() else None
    known = actors.by_name.get(actor.id)
    own = list(own_keys())
    for path in own if known is not None else ():
        if known is not None and _fingerprint(path) in known.keys:
            return path
    usable = usable_names(actors)
    if usable:
        hint = (
            f"the keys of this account may act as {', '.join(usable)}; choose a name with --as NAME or WORKPACKET_ACTOR"
        )
    else:
        hint = "workpacket key init --event, then have the policy of the base list its fingerprint in [actors.NAME]"
    what = f"no event key of this account may act as {actor.id}" if own else "this account has no event key"
    raise WorkpacketError("event_key_missing", f"{what}, and the policy on the base requires signed events", hint=hint)


def signed(plan: Plan, actors: Actors) -> Plan:
    """Return the plan with its events signed. An event's id changes with its signature, so later events refer to the
    new ids.

    Checkpoints have a separate signature, in a file next to their event.
    """
    if not plan.events or plan.events[0].packet == CHECKPOINT_LOG:
        return plan
    renamed: dict[str, str] = {}
    events: list[LogEvent] = []
    keys: dict[str, Path | None] = {}
    for event in plan.events:
        name = event.actor.id
        if name not in keys:
            keys[name] = key_of(event.actor, actors)
            _require_private(keys[name])
        after = _after(event, renamed)
        key = keys[name]
        made = _with_signature(after, key) if key is not None else after
        renamed[event.id] = made.id
        events.append(made)
    return replace(plan, events=tuple(events))


def _require_private(key: Path | None) -> None:
    if key is None:
        return
    _require_outside(key)
    try:
        mode = key.stat().st_mode
    except OSError as error:
        message = f"the event key {key} cannot be read: {error.strerror}"
        raise WorkpacketError("event_key_unfit", message, path=str(key)) from error
    if os.name != "nt" and mode & _PRIVATE:
        message = f"the event key {key} can be read by users other than its owner"
        raise WorkpacketError("event_key_unfit", message, hint=f"chmod 600 {key}", path=str(key))


def _after(event: LogEvent, renamed: dict[str, str]) -> LogEvent:
    """Return the event with the new ids of the signed events before it."""
    if not any(parent in renamed for parent in event.parents):
        return event
    parents: Iterable[Json] = sorted(renamed.get(parent, parent) for parent in event.parents)
    return _made({**event.json(), "parents": list(parents)})


def _with_signature(event: LogEvent, key: Path) -> LogEvent:
    from workpacket.approvals.fields import encode_base64

    blob = sign_event(event.signed_bytes(), key)
    return _made({**event.json(), "sig": encode_base64(blob)})


def _made(value: dict[str, Json]) -> LogEvent:
    return event_of(value, event_id(encode_event(value)))


def sign_event(message: bytes, key: Path) -> bytes:
    """Return the SSHSIG blob. It is not verified here, because that would load `cryptography`, and `check --base`
    verifies it anyway.
    """
    from workpacket.approvals.sshsig import EVENT_NAMESPACE, unarmor

    environment = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    environment["SSH_ASKPASS_REQUIRE"] = "never"
    command = [find_ssh_keygen(), "-q", "-Y", "sign", "-n", EVENT_NAMESPACE, "-f", str(key)]
    status, output = run_openssh(command, message, environment=environment, patience=30.0)
    blob = unarmor(output.decode("ascii", "replace").replace("\r\n", "\n")) if status == 0 else None
    if blob is None or isinstance(blob, Problem):
        raise WorkpacketError(
            "signing_failed",
            f"ssh-keygen failed to sign with {key} (status {status})",
            hint="an event key has no passphrase; workpacket key init --event creates one",
            path=str(key),
        )
    return blob


def proven_events(repository: Repository, actors: Actors, events: Iterable[LogEvent]) -> frozenset[str]:
    """Return the events among these whose signature proves the actor's identity under this policy. Verifying a
    signature takes longer than reading the event, so pass only events that are going to be shown.
    """
    signed = [event for event in events if event.sig] if actors.present else []
    if not signed:
        return frozenset()
    from workpacket.approvals.event_signatures import EventSignatures

    commit = judging_commit(repository)
    signatures = EventSignatures(actors, approving_keys(repository, commit), revoked_keys(repository, commit))
    return frozenset(event.id for event in signed if signatures.judge(event).proven)
