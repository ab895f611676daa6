"""The functions of the PostgreSQL store for what is rare: projects, erasing, whole streams, the index made anew."""

from __future__ import annotations

from workpacket.runtime.stores.postgres.functions import DEFINER

KEEPING = (
    # Only the owner of the schema makes a project, and keeps it.
    f"""CREATE FUNCTION {{s}}.open_project_1(p_name text) RETURNS integer LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE project integer;
    BEGIN
        SELECT id INTO project FROM projects WHERE name = p_name;
        IF project IS NULL AND pg_has_role(session_user, current_user, 'MEMBER') THEN
            INSERT INTO projects(name) VALUES (p_name) ON CONFLICT DO NOTHING;
            SELECT id INTO project FROM projects WHERE name = p_name;
            INSERT INTO members VALUES (project, current_user, 3) ON CONFLICT DO NOTHING;
        END IF;
        IF project IS NULL OR project NOT IN (SELECT my_projects()) THEN
            RAISE EXCEPTION 'the role % belongs to no project %', session_user, p_name
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN project;
    END $$""",
    # Who asks again because the answer was lost is told what was done: `request` is the same then.
    f"""CREATE FUNCTION {{s}}.erase_1(p_project integer, p_digest bytea, p_request text) RETURNS boolean
    LANGUAGE plpgsql {DEFINER} AS $$ BEGIN
        PERFORM require_level(p_project, 3);
        UPDATE payloads SET bytes = NULL, erased = p_request
            WHERE project = p_project AND digest = p_digest AND bytes IS NOT NULL;
        RETURN FOUND
            OR EXISTS (SELECT FROM payloads WHERE project = p_project AND digest = p_digest AND erased = p_request);
    END $$""",
    f"""CREATE FUNCTION {{s}}.remove_1(p_project integer, p_stream text, p_head bytea, p_request text) RETURNS boolean
    LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE s streams;
    BEGIN
        PERFORM require_level(p_project, 3);
        SELECT * INTO s FROM streams WHERE project = p_project AND name = p_stream FOR UPDATE;
        IF s.version IS NULL OR s.version = 0 OR s.hash <> p_head THEN RETURN false; END IF;
        IF s.state = 'removed' THEN RETURN s.request = p_request; END IF;
        UPDATE streams SET state = 'removed', ends = '-infinity', request = p_request WHERE id = s.id;
        DELETE FROM events WHERE stream = s.id AND version < s.version;
        DELETE FROM entries WHERE stream = s.id;
        DELETE FROM payloads WHERE stream = s.id;
        RETURN true;
    END $$""",
    # A restore is one transaction of three calls; until the last of them nobody can see the stream or add to it. 0 is
    # the answer to who asks again after all of it was done.
    f"""CREATE FUNCTION {{s}}.arrive_1(p_project integer, p_stream text, p_request text) RETURNS bigint
    LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE s streams;
    BEGIN
        PERFORM require_level(p_project, 2);
        INSERT INTO streams(project, name, state, request) VALUES (p_project, p_stream, 'arriving', p_request)
            ON CONFLICT DO NOTHING RETURNING * INTO s;
        IF s.id IS NULL THEN
            UPDATE streams SET state = 'arriving', request = p_request WHERE project = p_project AND name = p_stream
                AND version = 0 AND state = 'live' RETURNING * INTO s;
        END IF;
        IF s.id IS NULL THEN
            RETURN (SELECT 0 FROM streams WHERE project = p_project AND name = p_stream AND state = 'live'
                AND version > 0 AND request = p_request);
        END IF;
        RETURN s.id;
    END $$""",
    f"""CREATE FUNCTION {{s}}.bring_1(
        p_project integer, p_stream bigint, p_versions bigint[], p_types text[], p_type_versions integer[],
        p_occurred bigint[], p_recorded bigint[], p_actors text[], p_writers text[], p_seqs bigint[],
        p_event_keys text[], p_fences bigint[], p_data text[], p_payloads bytea[], p_previous bytea[],
        p_hashes bytea[], p_kinds text[], p_keys text[], p_statuses text[]) RETURNS void
    LANGUAGE plpgsql {DEFINER} AS $$
    BEGIN
        PERFORM require_level(p_project, 2);
        PERFORM FROM streams WHERE id = p_stream AND project = p_project AND state = 'arriving';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no stream is arriving' USING ERRCODE = 'insufficient_privilege';
        END IF;
        FOR i IN 1 .. cardinality(p_versions) LOOP
            INSERT INTO events VALUES (p_stream, p_versions[i], p_project, p_types[i], p_type_versions[i],
                p_occurred[i], p_recorded[i], p_actors[i], p_writers[i], p_seqs[i], p_event_keys[i], p_fences[i],
                p_data[i],
                p_payloads[i], p_previous[i], p_hashes[i]);
            IF p_payloads[i] IS NOT NULL THEN
                INSERT INTO payloads VALUES (p_stream, p_payloads[i], p_project, NULL) ON CONFLICT DO NOTHING;
            END IF;
            IF p_kinds[i] IS NOT NULL THEN
                INSERT INTO entries VALUES (p_stream, p_kinds[i], p_keys[i], p_project, p_versions[i], p_statuses[i])
                    ON CONFLICT (stream, kind, key) DO UPDATE SET version = excluded.version, status = excluded.status;
            END IF;
        END LOOP;
    END $$""",
    f"""CREATE FUNCTION {{s}}.bring_payloads_1(p_project integer, p_stream bigint, p_digests bytea[], p_bytes bytea[])
    RETURNS void LANGUAGE plpgsql {DEFINER} AS $$ BEGIN
        PERFORM require_level(p_project, 2);
        UPDATE payloads p SET bytes = b.bytes FROM unnest(p_digests, p_bytes) AS b(digest, bytes)
            WHERE p.stream = p_stream AND p.project = p_project AND p.digest = b.digest
            AND EXISTS (SELECT FROM streams WHERE id = p_stream AND project = p_project AND state = 'arriving');
    END $$""",
    f"""CREATE FUNCTION {{s}}.arrived_1(p_project integer, p_stream bigint) RETURNS void
    LANGUAGE plpgsql {DEFINER} AS $$ BEGIN
        PERFORM require_level(p_project, 2);
        UPDATE streams s SET state = 'live', version = e.version, hash = e.hash, writer = e.writer,
            writer_seq = e.writer_seq, fence = (SELECT max(fence) FROM events WHERE stream = p_stream)
        FROM (SELECT * FROM events WHERE stream = p_stream ORDER BY version DESC LIMIT 1) e
        WHERE s.id = p_stream AND s.project = p_project AND s.state = 'arriving';
    END $$""",
    f"""CREATE FUNCTION {{s}}.reindex_1(
        p_project integer, p_stream text, p_head bigint, p_kinds text[], p_keys text[], p_versions bigint[],
        p_statuses text[]) RETURNS boolean LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE s streams;
    BEGIN
        PERFORM require_level(p_project, 2);
        SELECT * INTO s FROM streams WHERE project = p_project AND name = p_stream AND state = 'live' FOR UPDATE;
        IF s.version IS DISTINCT FROM p_head THEN RETURN false; END IF;
        DELETE FROM entries WHERE stream = s.id;
        INSERT INTO entries SELECT s.id, i.kind, i.key, p_project, i.version, i.status
            FROM unnest(p_kinds, p_keys, p_versions, p_statuses) AS i(kind, key, version, status);
        RETURN true;
    END $$""",
    # Appends to a stream that somebody follows are announced: NOTIFY makes commits wait for each other.
    f"""CREATE FUNCTION {{s}}.follow_1(p_project integer, p_stream text, p_seconds double precision) RETURNS bigint
    LANGUAGE plpgsql {DEFINER} AS $$
    DECLARE found bigint;
    BEGIN
        PERFORM require_level(p_project, 1);
        PERFORM set_config('synchronous_commit', 'off', true);
        UPDATE streams SET followed = clock_timestamp() + make_interval(secs => p_seconds)
            WHERE project = p_project AND name = p_stream RETURNING id INTO found;
        RETURN found;
    END $$""",
)
