"""What the attacks of `test_hostile_hands` need: a stranger who signs, and the three doors that are tried."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from shell.agents import make_key_file
from shell.approvals.story import ALICE, POLICY, WP, Story, codes, moment_in
from workpacket.approvals.envelope import pae, write_envelope
from workpacket.problem import WorkpacketError
from workpacket.shell.approvals.facts import gate_verdict
from workpacket.shell.keys import find_key, sign, signers_line
from workpacket.value import replace

POLICY_FILE, SIGNERS = ".GOV/policy/policy.toml", ".GOV/policy/allowed_signers"
ATTESTATIONS = ".GOV/attestations"
MALLORY = "mallory@example.org"


class Doors(NamedTuple):
    """The codes at each door; none at the gate means that it is open."""

    gate: frozenset[str]
    verify: frozenset[str]
    check: frozenset[str]


def doors(story: Story, base: str | None = None, later: timedelta = timedelta()) -> Doors:
    words = ("--base", base) if base else ()
    verify = {each["code"] for each in story.json("approvals", "verify", *words)["findings"]}
    check = {each["code"] for each in story.json("check", *words)["findings"]}
    try:
        gate = codes(gate_verdict(story.repository, WP, "activation", base=base, moment=moment_in(later)))
    except WorkpacketError as error:
        gate = {error.code}
    return Doors(frozenset(gate), frozenset(verify), frozenset(check))


def link(story: Story, path: str, target: str) -> None:
    """A link in the place of a file or folder, which is moved away."""
    place = story.root / path
    if place.exists():
        place.rename(story.root / "moved-away")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def mallory(story: Story) -> str:
    """Her line for the list of signers; the key is made where there is none."""
    path = story.keys.setdefault(MALLORY, story.home / "mallory")
    if not path.exists():
        make_key_file(path)
    return signers_line(MALLORY, find_key(str(path)).public) + "\n"


def relax_policy(story: Story) -> None:
    """The policy as Mallory wants it."""
    story.write(SIGNERS, story.read(SIGNERS) + mallory(story))
    story.write(POLICY_FILE, POLICY.replace(f'approver = ["{ALICE}"', f'approver = ["{MALLORY}", "{ALICE}"'))


def sign_as_mallory(story: Story, **said: object) -> str:
    """An envelope in which all is well but for her name, the key, and what is `said` otherwise."""
    mallory(story)
    draft = story.draft()
    for change in draft.changes:
        assert change.new is not None
        story.write(change.path, change.new)
    statement = replace(draft.statement, **{"approver": MALLORY, **said})
    key = str(story.keys[MALLORY])
    payload = statement.payload()
    name, data = write_envelope(payload, find_key(key).public.fingerprint, sign(pae(payload), key))
    story.write(f"{ATTESTATIONS}/{name}", data)
    return name.partition(".")[0]
