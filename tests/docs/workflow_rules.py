"""What a workflow of ours may do: little, with actions that are pinned, and with no words of strangers in a script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from workpacket.text.source import Source
from workpacket.text.yaml_strict import load_yaml

_PINNED = re.compile(r"[\w.-]+/[\w./-]+@(?:[0-9a-f]{40}|v[0-9]+)\Z")
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
# Contexts that nobody outside of the repository can choose the words of. `inputs` come from the calling workflow.
_TRUSTED = re.compile(
    r"(?:inputs\.\w+|matrix\.\w+|runner\.os|github\.(?:workflow|ref|sha|workspace|event_name)|"
    r"github\.event\.pull_request\.(?:number|base\.sha|head\.sha|head\.repo\.fork)|format\(|,|\)|"
    r"steps\.\w+\.outcome|runner\.temp|cancelled\(\)|hashFiles\('[\w.]+'\)|'[^']*'|true|false|==|!=|!|&&|\|\||\s)+\Z"
)
_MAY = {"contents": ("read",), "security-events": ("write",)}
# A job that comments gets nothing of the change, so it may have a token that writes.
_MAY_COMMENT = {"pull-requests": ("write",)}
_TRUSTED_COMMENT = re.compile(r"\s*github\.token\s*\Z")
# A workflow that only a pushed tag starts publishes; whoever pushes tags chooses their names.
_MAY_RELEASE = {"contents": ("read", "write"), "id-token": ("write",), "attestations": ("write",)}
_TRUSTED_RELEASE = re.compile(r"\s*github\.(?:ref_name|token|repository)\s*\Z")
# A workflow that runs after another one attests what that one kept. It has nothing of the change checked out.
_MAY_ATTEST = {"actions": ("read",), "contents": ("read",), "id-token": ("write",)}
_TRUSTED_ATTEST = re.compile(
    r"(?:\s|github\.(?:token|event\.workflow_run\.(?:id|path|head_sha|event|conclusion))|'\w+'|==|!=|&&)+\Z"
)
# With the rights of the base nothing is run that lies in the change: this and no other command, the words of which are
# its own. In `base` lies the base itself.
_READS_ONLY = re.compile(
    r"python -m pip install (?:\./base|-- \"\$WORKPACKET\")|test \"\$\(git rev-parse .*|"
    r"if \[ -n \"\$BASE\" \]; then set -- --base \"\$BASE\"; fi|workpacket check( --[a-z]+ [\w\"$]+)*( \"\$@\" > \S+)?|"
    r"workpacket report pr --base \"\$BASE\" --out \"\$RUNNER_TEMP/workpacket\.md\"|"
    r"cat \"\$RUNNER_TEMP/workpacket\.md\" >> \"\$GITHUB_STEP_SUMMARY\""
)


def faults(name: str, text: str) -> Iterator[str]:
    """Everything that is wrong with the workflow."""
    loaded = load_yaml(Source(name, text))
    yield from (f"yaml: {fault.code}" for fault in loaded.faults)
    if loaded.root is None:
        return
    workflow: Any = loaded.root.plain()
    triggers = workflow.get("on", {})
    if "pull_request_target" in triggers:
        jobs = (job for job in workflow["jobs"].values() if not _comments(job))
        scripts = (step.get("run", "") for job in jobs for step in job.get("steps", ()))
        lines = (line for script in scripts for line in script.splitlines())
        yield from (f"run with the rights of the base: {line}" for line in lines if not _READS_ONLY.fullmatch(line))
    if "permissions" not in workflow:
        yield "it does not say what it may do"
    releases = triggers == {"push": {"tags": ["v*"]}}
    attests = set(triggers) == {"workflow_run"}
    may = _MAY_RELEASE if releases else _MAY_ATTEST if attests else _MAY
    if attests and any(
        "checkout" in step.get("uses", "") for job in workflow["jobs"].values() for step in job["steps"]
    ):
        yield "it checks something out, and could attest anything"
    yield from _permissions(workflow.get("permissions", {}), may)
    outside = {key: value for key, value in workflow.items() if key != "jobs"}
    for part in (outside, *workflow["jobs"].values()):
        also = _TRUSTED_RELEASE if releases else _TRUSTED_COMMENT if _comments(part) else None
        also = _TRUSTED_ATTEST if attests else also
        for inside in _expressions(part):
            if also is None or not also.match(inside):
                yield f"not to be trusted: {inside.strip()}"
    for job_name, job in workflow["jobs"].items():
        yield from _permissions(job.get("permissions", {}), _MAY_COMMENT if _comments(job) else may)
        if "timeout-minutes" not in job and "uses" not in job:
            yield f"{job_name} has no time limit"
        for step in (job, *job.get("steps", ())):
            yield from _step(step)


def _comments(job: Mapping[str, Any]) -> bool:
    """Whether the job has neither the change nor anything that is installed: it only passes a report on."""
    used = [step.get("uses", "").partition("@")[0] for step in job.get("steps", ())]
    return "pull-requests" in job.get("permissions", {}) and [name for name in used if name] == [
        "actions/download-artifact"
    ]


def _permissions(given: Any, may: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"permissions: {given}"
        return
    yield from (f"permission {what}: {how}" for what, how in given.items() if how not in may.get(what, ()))


def _step(step: dict[str, Any]) -> Iterator[str]:
    uses = step.get("uses", "")
    if uses and not _PINNED.match(uses):
        yield f"not pinned: {uses}"
    if uses.startswith("actions/checkout@") and step.get("with", {}).get("persist-credentials") is not False:
        yield "a checkout leaves its token behind"
    if "${{" in step.get("run", ""):
        yield "an expression is pasted into a script"


def _expressions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _expressions(one)
    elif isinstance(value, list):
        for one in value:
            yield from _expressions(one)
    elif isinstance(value, str):
        for inside in _EXPRESSION.findall(value):
            if not _TRUSTED.match(inside):
                yield inside
