"""For every failure mode of docs/runtime/failures.md, the guard that notices it and the test that would miss it.

A guard is a piece of code that stands once in its file, and what the file would say without it.
"""

from __future__ import annotations

from typing import NamedTuple


class Guard(NamedTuple):
    mode: str  # the kind and the failure mode, as the page names them
    test: str
    file: str  # below tools/workpacket
    guard: str
    without: str


_STEP = "tests/runtime/test_step.py::test_"
_BATCH = "tests/bridges/test_batch.py::test_"
_KILLED = "tests/proof/bridges/test_killed_batches.py::test_a_kill_while_a_"
_ROLE = "tests/bridges/test_roles.py::test_"
_COMMIT = "tests/runtime/test_commit_checkpoint.py::test_"
_KILL = f"{_COMMIT}a_kill_at_each_step_is_repaired_by_the_next_call"
_MOVED = f"{_COMMIT}work_is_skipped_only_on_a_commit_that_is_there"
_SESSION = "tests/runtime/test_session.py::test_"
_EFFECT = "tests/runtime/test_effect_receipts.py::test_"

GUARDS: tuple[Guard, ...] = (
    Guard("step: changed input", f"{_STEP}changed_inputs_block_by_name_with_old_and_new_value",
          "runtime/step/__init__.py", "if not verify_input_hash(checkpoint, present.inputs):", "if False:"),
    Guard("step: wider scope", f"{_STEP}what_may_have_changed_since_the_checkpoint[wider]",
          "runtime/step/__init__.py", "for scope in wider)) if wider else None",
          "for scope in wider)) if False else None"),
    Guard("step: less strictness", f"{_STEP}what_may_have_changed_since_the_checkpoint[weaker]",
          "runtime/step/__init__.py", "if wanted is not None and wanted.rank < recorded.rank:", "if False:"),
    Guard("step: missing token", f"{_STEP}a_token_of_a_log_that_is_gone_never_starts_afresh",
          "runtime/step/log.py", "            if found is None:\n", "            if False:\n"),
    Guard("step: used token", f"{_STEP}a_token_is_good_once",
          "runtime/step/log.py", "if token in self.spent:", "if False:"),
    Guard("step: unknown cursor", f"{_STEP}a_cursor_that_the_pipeline_does_not_have_blocks",
          "runtime/step/__init__.py", "if checkpoint.cursor not in cursors:", "if False:"),
    Guard("step: torn log", f"{_STEP}a_torn_line_is_quarantined_reported_and_can_be_had_back",
          "runtime/step/log.py", "end = self._heal(descriptor, log.tail)", "end = os.fstat(descriptor).st_size"),
    Guard("batch: crash while testers, implementers or reviewers begin", f"{_KILLED}phase_begins_is_continued",
          "bridges/foreign.py",
           "late = bool(different) and any(not differences(view, stated) for view in self.earlier)",
          "late = False"),
    Guard("batch: crash while it is completed", f"{_KILLED}batch_is_completed_never_loses_nor_doubles_the_commit",
          "bridges/batch_acts.py", "found = None if before is None else before.commit", "found = None"),
    Guard("batch: partial parallel success",
          f"{_BATCH}of_parallel_work_only_what_did_not_end_is_begun_again",
          "bridges/batch_acts.py", "units: list[Json] = list(batch.open_units)",
          "units: list[Json] = list(batch.units(phase))"),
    Guard("batch: edited task", f"{_BATCH}a_done_task_that_demands_something_else_now_blocks",
          "bridges/batch_facts.py",
          "elif state.recorded.definitions.get(task, scope.definitions[task]) != scope.definitions[task]:",
          "elif False:"),
    Guard("batch: un-done task", f"{_BATCH}a_task_that_is_no_longer_done_blocks_until_it_is_accepted",
          "bridges/batch_facts.py", "elif task in done and scope.statuses[task] not in SATISFIED:", "elif False:"),
    Guard("batch: cycle", f"{_BATCH}what_makes_a_plan_impossible_has_its_own_code[change0-batch_dependency_cycle]",
          "documents/summary.py", "elif other in depth:", "elif False:"),
    Guard("batch: deadlock",
          f"{_BATCH}what_makes_a_plan_impossible_has_its_own_code[change1-batch_dependency_deadlock]",
          "documents/batch_scope.py", "if pending and not able and", "if False and"),
    Guard("batch: reviewer time-out", f"{_BATCH}a_reviewer_who_gives_no_answer_has_approved_nothing",
          "bridges/batch_state.py", 'if self.stage(phase, unit).state != "ok"',
          'if self.stage(phase, unit).state not in {"ok", "timed_out"}'),
    Guard("batch: label '5a'", f"{_BATCH}labels_are_text_and_still_count",
          "bridges/batch_state.py", 'if counted["letter"]:', "if False:"),
    Guard("batch: failed verification", f"{_BATCH}after_a_failed_verification_the_work_goes_on_in_its_phase",
          "bridges/batch_state.py", 'replace(self.stage(phase, unit), state=outcome, holder="")',
          'replace(self.stage(phase, unit), state="ok", holder="")'),
    Guard("batch: rejected review",
          f"{_BATCH}after_a_rejected_review_the_implementers_go_on_and_everybody_reviews_again",
          "bridges/batch_state.py", 'if outcome != "rejected":', "if True:"),
    Guard("batch: second batch", f"{_BATCH}a_second_batch_begins_with_its_testers",
          "bridges/batch_state.py", 'state.batch.begun("testers", tasks, _text(data, "holder"))',
          'state.batch.ended("testers", tasks, "ok")'),
    Guard("batch: second orchestrator",
          "tests/bridges/test_batch_orchestrators.py::test_stages_are_begun_by_one_orchestrator_until_it_is_gone",
          "runtime/holders.py", 'return Caller(" ".join(line), frozenset(line))',
          "return Caller(line[0], frozenset(line))"),
    Guard("batch: dependency not allowed",
          "tests/bridges/test_batch_dependencies.py::"
          "test_a_batch_with_a_dependency_that_nobody_allowed_is_not_completed",
          "bridges/batch_acts.py", "if refused is not None:", "if False:"),
    Guard("role: zombie", f"{_ROLE}a_complete_feature_takes_no_more_milestones_and_its_roles_are_closed_at_once",
          "bridges/role_acts.py", "if facts.closed_by and milestone not in ENDS:", "if False:"),
    Guard("role: same role twice", f"{_ROLE}the_same_role_twice_is_said",
          "bridges/resumable.py", '"role_twice": bool(facts.twins)', '"role_twice": False'),
    Guard("role: rename", f"{_ROLE}a_renamed_file_is_named_and_no_second_one_is_begun",
          "bridges/role_facts.py", "    elif twins:\n", "    elif False:\n"),
    Guard("role: date without a time", f"{_ROLE}a_date_without_a_time_and_other_zones_are_ordered_as_moments",
          "bridges/resumable.py", "key=lambda one: (_moment(one.fields.updated), one.path)",
          "key=lambda one: (one.fields.updated, one.path)"),
    Guard("role: second writer", f"{_ROLE}a_second_instance_may_not_write_until_the_first_is_done",
          "bridges/role_acts.py", "free = present is not None and not at_work(present.holder, self.caller)",
          "free = present is not None"),
    Guard("role: artifact changed in between",
          "tests/bridges/test_role_facts.py::"
          "test_a_file_that_changed_since_the_last_milestone_is_said_and_stops_nothing",
          "bridges/role_facts.py", "        if now[path] != digest\n", "        if now[path] is None\n"),
    Guard("commit: crash before the commit", f"{_KILL}[prepared-committed-0]",
          "runtime/commit_checkpoint.py",
          'return None if found is None else self._complete(prepared, found, "found")',
          'return self._complete(prepared, found, "found")'),
    Guard("commit: crash after the commit", f"{_KILL}[committed-found-0]",
          "runtime/commit_checkpoint.py", "        settled = self.settle()\n", "        settled = None\n"),
    Guard("commit: crash after the sidecar", f"{_KILL}[sidecar-found-1]",
          "runtime/commit_checkpoint.py",
          "return None if head is None else commit_with_trailer(self.repository, head, TRAILER, prepared.checkpoint)",
          "return None"),
    Guard("commit: rebase", f"{_MOVED}[rebase-rewritten]",
          "runtime/commit_checkpoint.py",
          "        known = self._exists(commit)\n", '        return "unreachable"\n'),
    Guard("commit: squash", f"{_MOVED}[squash-rewritten]",
          "runtime/commit_checkpoint.py",
          "if known and holds_changes_of(self._repository, commit, head):", "if False:"),
    Guard("commit: amend", f"{_MOVED}[amend_content_and_keep_the_message-rewritten]",
          "runtime/commit_checkpoint.py", 'return "rewritten" if found is not None else "unreachable"\n\n',
          'return "unreachable"\n\n'),
    Guard("commit: reset", f"{_MOVED}[reset-unreachable]",
          "runtime/commit_checkpoint.py", 'if relation == "unreachable":', "if False:"),
    Guard("commit: milestone without changes", f"{_COMMIT}a_milestone_without_changes_has_a_record_and_no_commit",
          "runtime/commit_checkpoint.py", "        if paths:\n", "        if True:\n"),
    Guard("commit: foreign legacy message",
          "tests/bridges/test_commit_selection.py::test_a_legacy_message_may_be_anybodys",
          "bridges/commit_checkpoints.py", "elif self.legacy:", "if nameless:"),
    Guard("commit: message quoted in a body",
          "tests/bridges/test_commit_selection.py::"
          "test_the_message_of_another_run_and_one_in_a_body_are_no_checkpoints",
          "runtime/commit_checkpoint.py", 'first = message.split("\\n", 1)[0].rstrip("\\r")',
          'lines = message.split("\\n")\n'
          '    first = next((line for line in lines if _LEGACY.match(line) or _RUN_SPECIFIC.match(line)), "")'),
    Guard("session: killed between chunks", f"{_SESSION}killed_between_chunks_the_answer_is_asked_for_anew",
          "runtime/model_sessions/session.py",
          'session.recorder.record(RecordDraft("step.started", {"step": step, "processes": []}))',
          "pass"),
    Guard("session: killed in a tool call", f"{_SESSION}killed_around_a_tool_call_nobody_repeats_it_unasked",
          "runtime/model_sessions/record.py", "    if unknown:\n", "    if False:\n"),
    Guard("session: killed after the effect, before its outcome",
          f"{_SESSION}killed_around_a_tool_call_nobody_repeats_it_unasked[after-effect-repair-in_the_end1]",
          "runtime/model_sessions/record.py", 'if effect.kind in REPEATABLE:', "if True:"),
    Guard("session: program that keeps running", f"{_SESSION}a_program_that_outlives_its_session_blocks_until_it_ends",
          "runtime/model_sessions/record.py", "    if orphans:\n", "    if False:\n"),
    Guard("session: damaged artifact",
          f"{_SESSION}an_artifact_under_an_id_that_is_not_its_own_is_passed_over",
          "runtime/model_sessions/record.py", "artifact_id(body) != point.name", "False"),
    Guard("session: oversize",
          f"{_SESSION}a_state_that_is_too_large_for_a_checkpoint_becomes_an_artifact_of_its_own",
          "runtime/model_sessions/record.py", "if len(jcs_bytes(artifact.body)) <= LARGEST_INLINE:", "if True:"),
    Guard("session: calls made on another machine",
          "tests/bridges/test_sessions_here.py::test_a_session_goes_on_on_another_machine_and_repeats_no_call",
          "runtime/model_sessions/record.py",
          '*(draft for call in _rows(body, "calls") for draft in _call(stream, call)),',
          ""),
    Guard("effect: key of another effect",
          f"{_EFFECT}a_key_is_not_used_for_another_effect_in_the_same_attempt",
          "runtime/attempts/effects.py", "        if differing:\n", "        if False:\n"),
    Guard("effect: secret in the receipt", f"{_EFFECT}a_redacted_receipt_is_never_handed_out_as_a_value",
          "runtime/records/state.py", "and not (self.redactions or self.unkept)", ""),
    Guard("effect: result that is not JSON",
          f"{_EFFECT}an_act_whose_result_cannot_be_kept_is_known_to_have_happened",
          "runtime/attempts/effects.py", 'return {"unkept": described(error)}, None', "raise"),
    Guard("effect: error text that can't be stored in a record",
          "tests/runtime/test_failures.py"
          "::test_half_a_character_in_the_text_of_an_error_does_not_replace_the_error",
          "runtime/records/failures.py", 'return storable(f"{type(error).__name__}: {said}"[:LONGEST_SEARCHED])',
          'return f"{type(error).__name__}: {said}"[:ERROR_LENGTH]'),
    Guard("store: files removed, moved or replaced",
          "tests/runtime/test_sqlite.py::test_nothing_is_acknowledged_into_files_that_are_not_at_their_paths",
          "runtime/stores/sqlite/access.py", "        if missing:\n", "        if False:\n"),
    Guard("store: older copy that was accepted",
          "tests/runtime/test_rollback.py::test_an_effect_that_the_log_does_not_know_waits_for_a_person",
          "runtime/records/state.py", "        if not self.rolled_back_at:\n", "        if True:\n"),
)  # fmt: skip
