"""The writing functions of the PostgreSQL store: each one is a single statement for the client, and one transaction.

They run with the rights of the owner, so that a writer needs no rights on the tables, and check the caller's rights
themselves. `moment` is the clock of all leases: that of the server, which all machines share. Refusals are returned as
values, which the client converts to errors by the rules that all stores share (`stores.contract`). An append whose
hashes were computed from an outdated head is answered with `moved` and the head, and the client recomputes them.
"""

from __future__ import annotations

# A connection keeps a plan made for ten rows when the table has ten million, so index plans are preferred; set here,
# this also applies where a pooler lends the connections, on which nothing may be set.
DEFINER = "SECURITY DEFINER SET search_path = pg_catalog, {s}, pg_temp SET enable_seqscan = off"
# Called only by the functions above, with their rights and search path: setting those again costs as much as a look-up.
# No role is granted a right to call one of these.
_WITHIN = "VOLATILE"

ACCESS = (
    "CREATE FUNCTION {s}.moment() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'",
    f"""CREATE FUNCTION {{s}}.my_projects() RETURNS SETOF integer LANGUAGE sql STABLE {DEFINER} AS $$
        SELECT project FROM members m WHERE EXISTS (
            SELECT FROM pg_roles r WHERE r.rolname = m.role AND pg_has_role(session_user, r.oid, 'MEMBER')) $$""",
    f"""CREATE FUNCTION {{s}}.require_level(p_project integer, p_level integer) RETURNS void
    LANGUAGE plpgsql {_WITHIN} AS $$ BEGIN
        IF EXISTS (SELECT FROM members WHERE project = p_project AND role = session_user AND level >= p_level) THEN
            RETURN;
        END IF;
        IF NOT EXISTS (
            SELECT FROM members m JOIN pg_roles r ON r.rolname = m.role
            WHERE m.project = p_project AND m.level >= p_level AND pg_has_role(session_user, r.oid, 'MEMBER')
        ) THEN
            RAISE EXCEPTION 'the role % may not do this in this project', session_user
                USING ERRCODE = 'insufficient_privilege';
        END IF;
    END $$""",
    f"""CREATE FUNCTION {{s}}.first_token(p_token bigint) RETURNS bigint LANGUAGE plpgsql {_WITHIN} AS $$
    DECLARE life integer;
    BEGIN
        SELECT number INTO life FROM lives WHERE began = pg_postmaster_start_time();
        IF life IS NULL THEN
            LOCK TABLE lives IN EXCLUSIVE MODE;
            INSERT INTO lives SELECT coalesce(max(number) + 1, 0), pg_postmaster_start_time() FROM lives
                ON CONFLICT DO NOTHING;
            SELECT number INTO life FROM lives WHERE began = pg_postmaster_start_time();
            -- The number of this life must not be lost, even in a transaction that need not be durable otherwise.
            PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
        RETURN greatest(p_token, life * 1048576::bigint) + 1;
    END $$""",
)

_ASKED = """
    p_project integer, p_stream text, p_base bigint, p_base_hash bytea, p_writer text, p_seq bigint, p_key text,
    p_fence bigint, p_expected bigint, p_actor text, p_occurred bigint, p_recorded bigint,
    p_types text[], p_type_versions integer[], p_data text[], p_payloads text[], p_bytes bytea, p_sizes integer[],
    p_hashes text[], p_kinds text[], p_keys text[], p_statuses text[]"""
_ANSWERED = """
    OUT outcome text, OUT at_version bigint, OUT at_hash bytea, OUT number bigint, OUT seconds double precision"""
# {also} is a further change to the row of the stream, {after} a further action once the events are stored: a nested
# function call would cost each append as much as an index row.
_STORING = """
DECLARE
    s streams; began {began}; last bigint := 0; count integer := cardinality(p_types); before bytea := p_base_hash;
    address bytea; own bytea; at integer := 1;
BEGIN
    IF NOT EXISTS (SELECT FROM members WHERE project = p_project AND role = session_user AND level >= 2) THEN
        PERFORM require_level(p_project, 2);
    END IF;
    SELECT * INTO s FROM streams WHERE project = p_project AND name = p_stream FOR UPDATE;
    IF NOT FOUND THEN
        s.state := 'live'; s.version := 0; s.hash := decode(repeat('00', 32), 'hex'); s.fence := 0; s.token := 0;
        s.ends := '-infinity'; s.followed := '-infinity'; s.writer := '';
    ELSIF s.state <> 'live' THEN
        outcome := 'removed'; RETURN;
    END IF;
    IF p_key IS NOT NULL AND s.id IS NOT NULL THEN
        SELECT version INTO at_version FROM events WHERE stream = s.id AND key = p_key;
        IF FOUND THEN outcome := 'key'; RETURN; END IF;
    END IF;
    IF s.writer = p_writer AND s.version > 0 THEN
        last := s.writer_seq;
    ELSE
        SELECT * INTO began FROM {began} WHERE project = p_project AND writer = p_writer{first};
        IF FOUND THEN
            SELECT writer_seq INTO last FROM events
                WHERE stream = began.stream AND version >= began.version AND writer = p_writer
                ORDER BY version DESC LIMIT 1;
        END IF;
    END IF;
    IF p_seq <= last THEN
        outcome := 'repeated';
        SELECT version INTO at_version FROM events WHERE stream = s.id AND writer = p_writer AND writer_seq = p_seq
            ORDER BY version DESC LIMIT 1;
        RETURN;
    ELSIF p_seq <> last + 1 THEN
        outcome := 'gap'; number := last; RETURN;
    END IF;
    IF p_fence IS NOT NULL THEN
        seconds := CASE WHEN s.ends = '-infinity' THEN 0 ELSE extract(epoch FROM s.ends - moment()) END;
        IF p_fence <> s.token OR p_fence < s.fence OR seconds <= 0 THEN
            outcome := 'fence'; at_version := s.fence; number := s.token; RETURN;
        END IF;
    END IF;
    IF p_expected IS NOT NULL AND p_expected <> s.version THEN
        outcome := 'version'; at_version := s.version; RETURN;
    END IF;
    IF p_base <> s.version OR p_base_hash <> s.hash THEN
        outcome := 'moved'; at_version := s.version; at_hash := s.hash; RETURN;
    END IF;
    IF s.id IS NULL THEN
        INSERT INTO streams(project, name, version, hash, fence, writer, writer_seq)
            VALUES (p_project, p_stream, count, decode(p_hashes[count], 'hex'), coalesce(p_fence, 0), p_writer,
                p_seq + count - 1)
            ON CONFLICT DO NOTHING RETURNING id INTO s.id;
        IF s.id IS NULL THEN
            outcome := 'again'; RETURN;
        END IF;
    ELSE
        UPDATE streams SET version = p_base + count, hash = decode(p_hashes[count], 'hex'),
            fence = greatest(fence, p_fence), writer = p_writer, writer_seq = p_seq + count - 1{also} WHERE id = s.id;
    END IF;
    FOR i IN 1 .. count LOOP
        address := decode(p_payloads[i], 'hex');
        own := decode(p_hashes[i], 'hex');
        INSERT INTO events VALUES (s.id, p_base + i, p_project, p_types[i], p_type_versions[i], p_occurred, p_recorded,
            p_actor, p_writer, p_seq + i - 1, CASE i WHEN 1 THEN p_key END, coalesce(p_fence, 0), p_data[i],
            address, before, own);
        before := own;
        IF address IS NOT NULL THEN
            INSERT INTO payloads AS p VALUES (s.id, address, p_project, substring(p_bytes FROM at FOR p_sizes[i]))
                ON CONFLICT (stream, digest) DO UPDATE SET bytes = excluded.bytes WHERE p.bytes IS NULL;
            at := at + p_sizes[i];
        END IF;
        IF p_kinds[i] IS NOT NULL THEN
            INSERT INTO entries VALUES (s.id, p_kinds[i], p_keys[i], p_project, p_base + i, p_statuses[i])
                ON CONFLICT (stream, kind, key) DO UPDATE SET version = excluded.version, status = excluded.status;
        END IF;
    END LOOP;
    IF s.followed > clock_timestamp() THEN
        PERFORM pg_notify('workpacket_streams', s.id::text);
    END IF;
    outcome := 'stored';{after}
END $$"""


def _appends(verb: str, **parts: str) -> tuple[str, ...]:
    body = _STORING
    for name, text in parts.items():
        body = body.replace(f"{{{name}}}", text)
    return (
        f"{verb} FUNCTION {{s}}.append_1({_ASKED},{_ANSWERED}) LANGUAGE plpgsql {DEFINER} AS $$"
        + body.replace("{also}", "").replace("{after}", ""),
        # The last append of a run from the queue: in the same transaction, the job is finished, its lease released and
        # the next job claimed, unless `p_seconds` is null. Repeated because the answer was lost, it returns `repeated`
        # and claims nothing: the job claimed the first time then waits for the end of its lease.
        f"""{verb} FUNCTION {{s}}.append_last_1({_ASKED}, p_job bigint, p_queue text, p_holder text,
    p_seconds double precision,{_ANSWERED},
    OUT job bigint, OUT job_stream text, OUT job_request text, OUT job_token bigint, OUT try integer,
    OUT tries_allowed integer, OUT begun boolean) LANGUAGE plpgsql {DEFINER} AS $$"""
        + body.replace("{also}", ", ends = least(ends, moment())").replace(
            "{after}",
            """
    DELETE FROM jobs WHERE id = p_job AND project = p_project AND state = 'claimed' AND token = p_fence;
    IF p_seconds IS NOT NULL THEN
        SELECT c.job, c.stream, c.request, c.number, c.try, c.tries_allowed, c.begun
            INTO job, job_stream, job_request, job_token, try, tries_allowed, begun
            FROM claim_next(p_project, p_queue, p_holder, p_seconds, false) c;
    END IF;""",
        ),
    )


APPENDS = _appends("CREATE", began="events", first=" AND writer_seq = 1")
# The same calls, for programs of both versions: from version 3 on, the writers have a table of their own.
APPENDS_3 = _appends("CREATE OR REPLACE", began="writers", first="")

LEASES = (
    f"""CREATE FUNCTION {{s}}.take_lease(
        p_project integer, p_stream text, p_holder text, p_seconds double precision, p_over bigint, p_request text,
        OUT outcome text, OUT number bigint, OUT present text, OUT seconds double precision, OUT begun boolean)
    LANGUAGE plpgsql {_WITHIN} AS $$
    DECLARE s {{s}}.streams; at timestamptz;
    BEGIN
        SELECT * INTO s FROM streams WHERE project = p_project AND name = p_stream FOR UPDATE;
        IF NOT FOUND THEN
            number := first_token(0);
            INSERT INTO streams(project, name, token, holder, request, ends) VALUES (p_project, p_stream, number,
                p_holder, p_request, moment() + make_interval(secs => p_seconds)) ON CONFLICT DO NOTHING;
            outcome := CASE WHEN FOUND THEN 'taken' ELSE 'again' END; begun := false;
            RETURN;
        END IF;
        at := moment();
        IF s.ends > at AND p_request <> '' AND s.request = p_request THEN
            outcome := 'taken'; number := s.token; RETURN;
        END IF;
        IF s.ends > at AND s.token IS DISTINCT FROM p_over THEN
            outcome := 'held'; number := s.token; present := s.holder; seconds := extract(epoch FROM s.ends - at);
            RETURN;
        END IF;
        begun := s.version > 0;
        number := first_token(greatest(s.token, s.fence));
        UPDATE streams SET token = number, holder = p_holder, request = p_request,
            ends = at + make_interval(secs => p_seconds) WHERE id = s.id;
        outcome := 'taken';
    END $$""",
    f"""CREATE FUNCTION {{s}}.acquire_1(
        p_project integer, p_stream text, p_holder text, p_seconds double precision, p_over bigint, p_request text,
        OUT outcome text, OUT number bigint, OUT present text, OUT seconds double precision)
    LANGUAGE plpgsql {DEFINER} AS $$ BEGIN
        PERFORM require_level(p_project, 2);
        SELECT t.outcome, t.number, t.present, t.seconds INTO outcome, number, present, seconds
            FROM take_lease(p_project, p_stream, p_holder, p_seconds, p_over, p_request) t;
    END $$""",
    f"""CREATE FUNCTION {{s}}.renew_1(p_project integer, p_stream text, p_token bigint, p_seconds double precision)
    RETURNS boolean LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE s streams;
    BEGIN
        PERFORM require_level(p_project, 2);
        SELECT * INTO s FROM streams WHERE project = p_project AND name = p_stream FOR UPDATE;
        IF s.token IS DISTINCT FROM p_token OR s.ends <= moment() THEN RETURN false; END IF;
        -- A lease that ends too early by a crash of the server is only lost, never held twice.
        PERFORM set_config('synchronous_commit', 'off', true);
        UPDATE streams SET ends = moment() + make_interval(secs => p_seconds) WHERE id = s.id;
        RETURN true;
    END $$""",
    f"""CREATE FUNCTION {{s}}.release_1(p_project integer, p_stream text, p_token bigint) RETURNS void
    LANGUAGE plpgsql {DEFINER} AS $$ BEGIN
        PERFORM require_level(p_project, 2);
        PERFORM set_config('synchronous_commit', 'off', true);
        UPDATE streams SET ends = least(ends, moment())
            WHERE project = p_project AND name = p_stream AND token = p_token;
    END $$""",
)

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
    # The lease of a run is released together with the job, in one transaction.
    """CREATE FUNCTION {s}.give_up(p_project integer, p_stream text, p_token bigint) RETURNS void LANGUAGE plpgsql
    AS $$ BEGIN
        UPDATE streams SET ends = least(ends, moment())
            WHERE project = p_project AND name = p_stream AND token = p_token;
    END $$""",
    # Delayed jobs that are due, and jobs whose workers lost their leases, wait again.
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
    # Without `p_in_lanes`, a job of a lane is skipped when its turn comes, together with all jobs after it.
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
            IF taken.outcome <> 'taken' THEN  -- someone works on the run without the queue
                passed := passed || j.id; CONTINUE;
            END IF;
            UPDATE jobs SET state = 'claimed', token = taken.number, tries = tries + 1 WHERE id = j.id;
            job := j.id; stream := j.stream; request := j.request; number := taken.number; try := j.tries + 1;
            tries_allowed := j.max_tries; begun := taken.begun;
            RETURN;
        END LOOP;
    END $$""",
    # The job `p_done` is finished in the same transaction: one commit per job.
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
