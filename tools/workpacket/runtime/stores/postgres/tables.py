"""The tables of the PostgreSQL store, as its first migration makes them. `{s}` stands for the schema.

One row of `streams` holds the head of a stream *and* its lease: whoever appends and whoever takes the lease queue at
one row lock, so that a fence cannot be overtaken between the look at it and the commit, and an append costs one row
update beside its inserts. Nobody but the owner writes to a table directly; see `roles`.

Every look-up on the way of a run is an equality on the beginning of a unique index, which no planner turns into
anything else, with statistics or without.
"""

from __future__ import annotations

TABLES = (
    """CREATE TABLE {s}.projects(
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE)""",
    # level: 1 reads, 2 writes, 3 erases and removes
    """CREATE TABLE {s}.members(
        project integer NOT NULL REFERENCES {s}.projects, role name NOT NULL,
        level integer NOT NULL CHECK (level BETWEEN 1 AND 3), PRIMARY KEY (project, role))""",
    # Each life of a server process has a number. Tokens of leases begin anew far above those of the life before, so
    # that a token that was handed out and then lost with a crash or a failover is never handed out again.
    """CREATE TABLE {s}.lives(number integer NOT NULL UNIQUE, began timestamptz PRIMARY KEY)""",
    # state: 'live', 'removed' by retention, 'arriving' while a restore goes on
    """CREATE TABLE {s}.streams(
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project integer NOT NULL, name text COLLATE "C" NOT NULL,
        state text NOT NULL DEFAULT 'live', version bigint NOT NULL DEFAULT 0,
        hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'), fence bigint NOT NULL DEFAULT 0,
        writer text NOT NULL DEFAULT '', writer_seq bigint NOT NULL DEFAULT 0,
        token bigint NOT NULL DEFAULT 0, holder text NOT NULL DEFAULT '', request text NOT NULL DEFAULT '',
        ends timestamptz NOT NULL DEFAULT '-infinity', followed timestamptz NOT NULL DEFAULT '-infinity',
        UNIQUE (project, name)) WITH (fillfactor = 50)""",
    """CREATE TABLE {s}.events(
        stream bigint NOT NULL, version bigint NOT NULL, project integer NOT NULL, type text NOT NULL,
        type_version integer NOT NULL, occurred_at bigint NOT NULL, recorded_at bigint NOT NULL, actor text NOT NULL,
        writer text COLLATE "C" NOT NULL, writer_seq bigint NOT NULL, key text COLLATE "C", fence bigint NOT NULL,
        data text NOT NULL, payload bytea, previous bytea NOT NULL, hash bytea NOT NULL,
        PRIMARY KEY (stream, version))""",
    # Only where a writer begins: an index of every sequence number would cost each append a page. The function
    # `append` keeps the numbers unique and gapless behind the lock of the stream.
    """CREATE UNIQUE INDEX event_writer ON {s}.events(project, writer) WHERE writer_seq = 1""",
    """CREATE UNIQUE INDEX event_key ON {s}.events(stream, key) WHERE key IS NOT NULL""",
    # By stream, although the address would do: a result that all runs share must not make them wait for each other.
    """CREATE TABLE {s}.payloads(
        stream bigint NOT NULL, digest bytea NOT NULL, project integer NOT NULL, bytes bytea, erased text,
        PRIMARY KEY (stream, digest))""",
    """CREATE TABLE {s}.entries(
        stream bigint NOT NULL, kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
        project integer NOT NULL, version bigint NOT NULL, status text COLLATE "C" NOT NULL,
        PRIMARY KEY (stream, kind, key))""",
    """CREATE INDEX entry_version ON {s}.entries(stream, kind, version)""",
    """CREATE INDEX entry_status ON {s}.entries(project, kind, status)""",
    # state: 'waiting', 'delayed' until `due`, 'claimed' for as long as the lease `token` of its stream is in force,
    # 'dead' with a reason. What is finished is gone from here: the run itself says how it ended.
    """CREATE TABLE {s}.jobs(
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project integer NOT NULL,
        queue text COLLATE "C" NOT NULL, stream text COLLATE "C" NOT NULL, request text NOT NULL,
        priority integer NOT NULL, lane text COLLATE "C", lane_limit integer NOT NULL,
        state text COLLATE "C" NOT NULL DEFAULT 'waiting', due timestamptz NOT NULL,
        tries integer NOT NULL DEFAULT 0, max_tries integer NOT NULL, token bigint NOT NULL DEFAULT 0,
        reason text NOT NULL DEFAULT '', detail text NOT NULL DEFAULT '', offered_at timestamptz NOT NULL,
        UNIQUE (project, queue, stream)) WITH (fillfactor = 70)""",
    """CREATE INDEX job_waiting ON {s}.jobs(project, queue, priority DESC, id) WHERE state = 'waiting'""",
    """CREATE INDEX job_delayed ON {s}.jobs(project, queue, due) WHERE state = 'delayed'""",
    """CREATE INDEX job_claimed ON {s}.jobs(project, queue, lane) WHERE state = 'claimed'""",
)

GUARDS = (
    """CREATE FUNCTION {s}.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, {s}, pg_temp
    AS $$ BEGIN RAISE EXCEPTION 'events are never changed' USING ERRCODE = 'insufficient_privilege'; END $$""",
    # The last event of a removed stream stays as its tombstone.
    """CREATE FUNCTION {s}.refuse_removal() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, {s}, pg_temp
    AS $$ BEGIN
        IF EXISTS (SELECT FROM streams WHERE id = OLD.stream AND state = 'removed' AND version > OLD.version) THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION 'events are never deleted' USING ERRCODE = 'insufficient_privilege';
    END $$""",
    """CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON {s}.events
        FOR EACH ROW EXECUTE FUNCTION {s}.refuse_change()""",
    """CREATE TRIGGER events_stay BEFORE DELETE ON {s}.events FOR EACH ROW EXECUTE FUNCTION {s}.refuse_removal()""",
    """CREATE TRIGGER events_all_stay BEFORE TRUNCATE ON {s}.events
        FOR EACH STATEMENT EXECUTE FUNCTION {s}.refuse_change()""",
)

SHARED_BY_PROJECTS = ("streams", "events", "payloads", "entries", "jobs")


def row_security() -> tuple[str, ...]:
    """A role sees the rows of the projects it belongs to and no others. The subquery is evaluated once a query."""
    mine = "ANY (ARRAY(SELECT {s}.my_projects()))"
    statements: list[str] = []
    for table, column in (("projects", "id"), *((table, "project") for table in SHARED_BY_PROJECTS)):
        statements.append(f"ALTER TABLE {{s}}.{table} ENABLE ROW LEVEL SECURITY")
        statements.append(f"CREATE POLICY mine ON {{s}}.{table} FOR SELECT USING ({column} = {mine})")
    return tuple(statements)
