"""The functions of the work queue. A job is a run that is offered; claiming it takes the lease of the run.

One lease says both that somebody has the job and that nobody else may write to the run, so the two cannot differ. A
claim need not be durable: nothing is done under it before an append with its token is, and that makes it durable.
"""

from __future__ import annotations

from workpacket.runtime.stores.postgres.functions import DEFINER

JOBS = (
    f"""CREATE FUNCTION {{s}}.offer_1(
        p_project integer, p_queue text, p_stream text, p_request text, p_priority integer, p_lane text,
        p_lane_limit integer, p_delay double precision, p_max_tries integer) RETURNS boolean
    LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE at timestamptz := moment();
    BEGIN
        PERFORM require_level(p_project, 2);
        INSERT INTO jobs(project, queue, stream, request, priority, lane, lane_limit, state, due, max_tries, offered_at)
            VALUES (p_project, p_queue, p_stream, p_request, p_priority, p_lane, p_lane_limit,
                CASE WHEN p_delay > 0 THEN 'delayed' ELSE 'waiting' END, at + make_interval(secs => p_delay),
                p_max_tries, at)
            ON CONFLICT DO NOTHING;
        IF FOUND AND p_delay <= 0 THEN
            PERFORM pg_notify('workpacket_jobs', p_project || ' ' || p_queue);
        END IF;
        RETURN FOUND;
    END $$""",
    # The lease of a run is given up with the job, in one transaction.
    """CREATE FUNCTION {s}.give_up(p_project integer, p_stream text, p_token bigint) RETURNS void LANGUAGE plpgsql
    AS $$ BEGIN
        UPDATE streams SET ends = least(ends, moment())
            WHERE project = p_project AND name = p_stream AND token = p_token;
    END $$""",
    # Jobs whose time has come, and jobs whose worker has lost its lease, wait again.
    f"""CREATE FUNCTION {{s}}.refresh_1(p_project integer, p_queue text) RETURNS void LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE at timestamptz := moment();
    BEGIN
        UPDATE jobs SET state = 'waiting' WHERE id IN (
            SELECT id FROM jobs WHERE project = p_project AND queue = p_queue AND state = 'delayed' AND due <= at
            FOR UPDATE SKIP LOCKED);
        UPDATE jobs SET state = CASE WHEN tries < max_tries THEN 'waiting' ELSE 'dead' END, reason = 'worker_lost',
            detail = 'its worker ended without a word' WHERE id IN (
            SELECT j.id FROM jobs j LEFT JOIN streams s ON s.project = j.project AND s.name = j.stream
            WHERE j.project = p_project AND j.queue = p_queue AND j.state = 'claimed'
            AND (s.id IS NULL OR s.token <> j.token OR s.ends <= at)
            FOR UPDATE OF j SKIP LOCKED);
    END $$""",
    # Without `p_in_lanes` a job of a lane whose turn it is is left alone, and with it all that come after it.
    """CREATE FUNCTION {s}.claim_next(
        p_project integer, p_queue text, p_holder text, p_seconds double precision, p_in_lanes boolean,
        OUT job bigint, OUT stream text, OUT request text, OUT number bigint, OUT try integer,
        OUT tries_allowed integer, OUT begun boolean)
    LANGUAGE plpgsql AS $$
    DECLARE
        j {s}.jobs; taken record; full_lanes text[] := ARRAY[]::text[]; passed bigint[] := ARRAY[]::bigint[];
    BEGIN
        LOOP
            SELECT * INTO j FROM jobs WHERE project = p_project AND queue = p_queue AND state = 'waiting'
                AND (lane IS NULL OR lane <> ALL (full_lanes)) AND id <> ALL (passed)
                ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED;
            EXIT WHEN NOT FOUND OR (j.lane IS NOT NULL AND NOT p_in_lanes);
            IF j.lane IS NOT NULL THEN
                -- Who claims in a lane claims alone in it, so the count below is right until the commit; which
                -- therefore must not wait for a disk.
                IF NOT pg_try_advisory_xact_lock(hashtextextended(p_project || ' ' || p_queue || ' ' || j.lane, 0))
                    OR (SELECT count(*) FROM jobs WHERE project = p_project AND queue = p_queue AND state = 'claimed'
                        AND lane = j.lane) >= j.lane_limit
                THEN
                    -- Look once which others are full too, so that a thousand of them are passed over in one go.
                    IF cardinality(full_lanes) = 0 THEN
                        SELECT coalesce(array_agg(lane), full_lanes) INTO full_lanes FROM (
                            SELECT lane FROM jobs WHERE project = p_project AND queue = p_queue AND state = 'claimed'
                            AND lane IS NOT NULL GROUP BY lane HAVING count(*) >= min(lane_limit)) f;
                    END IF;
                    full_lanes := full_lanes || j.lane; CONTINUE;
                END IF;
            END IF;
            SELECT * INTO taken FROM take_lease(p_project, j.stream, p_holder, p_seconds, NULL, '');
            IF taken.outcome <> 'taken' THEN  -- somebody works on the run without the queue
                passed := passed || j.id; CONTINUE;
            END IF;
            UPDATE jobs SET state = 'claimed', token = taken.number, tries = tries + 1 WHERE id = j.id;
            job := j.id; stream := j.stream; request := j.request; number := taken.number; try := j.tries + 1;
            tries_allowed := j.max_tries; begun := taken.begun;
            RETURN;
        END LOOP;
    END $$""",
    # The job `p_done` is finished in the same transaction: one commit a job.
    f"""CREATE FUNCTION {{s}}.claim_1(
        p_project integer, p_queue text, p_holder text, p_seconds double precision, p_done bigint, p_done_token bigint,
        OUT job bigint, OUT stream text, OUT request text, OUT number bigint, OUT try integer,
        OUT tries_allowed integer, OUT begun boolean)
    LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE j jobs;
    BEGIN
        PERFORM require_level(p_project, 2);
        PERFORM set_config('synchronous_commit', 'off', true);
        IF p_done IS NOT NULL THEN
            DELETE FROM jobs WHERE id = p_done AND project = p_project AND state = 'claimed' AND token = p_done_token
                RETURNING * INTO j;
            IF FOUND THEN PERFORM give_up(p_project, j.stream, p_done_token); END IF;
        END IF;
        SELECT c.* INTO job, stream, request, number, try, tries_allowed, begun
            FROM claim_next(p_project, p_queue, p_holder, p_seconds, true) c;
    END $$""",
    f"""CREATE FUNCTION {{s}}.settle_1(
        p_project integer, p_job bigint, p_token bigint, p_state text, p_delay double precision, p_reason text,
        p_detail text, p_untried boolean) RETURNS boolean
    LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE j jobs;
    BEGIN
        PERFORM require_level(p_project, 2);
        IF p_state = 'done' THEN
            PERFORM set_config('synchronous_commit', 'off', true);
            DELETE FROM jobs WHERE id = p_job AND project = p_project AND state = 'claimed' AND token = p_token
                RETURNING * INTO j;
        ELSE
            UPDATE jobs SET state = p_state, due = moment() + make_interval(secs => p_delay), reason = p_reason,
                detail = p_detail, tries = tries - p_untried::integer
                WHERE id = p_job AND project = p_project AND state = 'claimed' AND token = p_token RETURNING * INTO j;
        END IF;
        IF NOT FOUND THEN RETURN false; END IF;
        PERFORM give_up(p_project, j.stream, p_token);
        IF p_state = 'waiting' THEN
            PERFORM pg_notify('workpacket_jobs', p_project || ' ' || j.queue);
        END IF;
        RETURN true;
    END $$""",
    f"""CREATE FUNCTION {{s}}.revive_1(p_project integer, p_job bigint) RETURNS boolean
    LANGUAGE plpgsql {DEFINER} AS $$ BEGIN
        PERFORM require_level(p_project, 2);
        UPDATE jobs SET state = 'waiting', tries = 0 WHERE id = p_job AND project = p_project AND state = 'dead';
        RETURN FOUND;
    END $$""",
)
