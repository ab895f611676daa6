"""The schema of the PostgreSQL store: created if missing, upgraded by its owner, refused otherwise.

All migrations run in one transaction under an advisory lock, so that any number of machines may start at the same time.
Functions carry the number of the protocol that their callers use. A migration that changes the meaning of an append
creates `append_2` and drops `append_1`: a program of the previous version is refused at its next call, with the reason,
and never writes to tables that it does not know.

The first migration creates the tables. `{s}` is a placeholder for the schema.

One row of `streams` contains the head of a stream *and* its lease: appending and taking the lease wait for the same row
lock, so that a fence cannot be overtaken between its check and the commit, and an append needs only one row update
besides its inserts. Only the owner may write to a table directly; see `roles`.

Every lookup during a run is an equality on a prefix of a unique index, which no planner changes, with or without
statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

from psycopg import errors, sql

from workpacket.runtime.errors import NewerSchema, StoreUnavailable
from workpacket.runtime.stores.postgres.access import Connection, PostgresAccess
from workpacket.runtime.stores.postgres.functions import ACCESS, APPENDS, APPENDS_3, DEFINER, JOBS, LEASES

TABLES = (
    """CREATE TABLE {s}.projects(
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE)""",
    # level: 1 reads, 2 writes, 3 erases and removes
    """CREATE TABLE {s}.members(
        project integer NOT NULL REFERENCES {s}.projects, role name NOT NULL,
        level integer NOT NULL CHECK (level BETWEEN 1 AND 3), PRIMARY KEY (project, role))""",
    # Each life of a server process has a number. Lease tokens start far above those of the life before, so that a token
    # that was issued and then lost in a crash or failover is never issued again.
    """CREATE TABLE {s}.lives(number integer NOT NULL UNIQUE, began timestamptz PRIMARY KEY)""",
    # state: 'live', 'removed' by retention, 'arriving' during a restore
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
    # Only where a writer begins: an index of every sequence number would cost each append a page. The function `append`
    # keeps the numbers unique and gapless under the lock of the stream.
    """CREATE UNIQUE INDEX event_writer ON {s}.events(project, writer) WHERE writer_seq = 1""",
    """CREATE UNIQUE INDEX event_key ON {s}.events(stream, key) WHERE key IS NOT NULL""",
    # By stream, although the address would suffice: a result that all runs share must not make them wait for each
    # other.
    """CREATE TABLE {s}.payloads(
        stream bigint NOT NULL, digest bytea NOT NULL, project integer NOT NULL, bytes bytea, erased text,
        PRIMARY KEY (stream, digest))""",
    """CREATE TABLE {s}.entries(
        stream bigint NOT NULL, kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
        project integer NOT NULL, version bigint NOT NULL, status text COLLATE "C" NOT NULL,
        PRIMARY KEY (stream, kind, key))""",
    """CREATE INDEX entry_version ON {s}.entries(stream, kind, version)""",
    """CREATE INDEX entry_status ON {s}.entries(project, kind, status)""",
    # state: 'waiting', 'delayed' until `due`, 'claimed' while the lease `token` of its stream is in force, 'dead' with
    # a reason. Finished jobs are deleted: the run itself says how it ended.
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
    # The last event of a removed stream remains as its tombstone.
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


def row_security(tables: tuple[str, ...] = ("projects", *SHARED_BY_PROJECTS)) -> tuple[str, ...]:
    """Limit each role to the rows of its projects. The subquery is evaluated once per query."""
    mine = "ANY (ARRAY(SELECT {s}.my_projects()))"
    statements: list[str] = []
    for table in tables:
        column = "id" if table == "projects" else "project"
        statements.append(f"ALTER TABLE {{s}}.{table} ENABLE ROW LEVEL SECURITY")
        statements.append(f"CREATE POLICY mine ON {{s}}.{table} FOR SELECT USING ({column} = {mine})")
    return tuple(statements)


KEEPING = (
    # Only the owner of the schema creates and keeps a project.
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
    # A request repeated because the answer was lost returns the first result: `request` is the same then.
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
    # A restore is one transaction of three calls; until the last one, no one can see or extend the stream. 0 is the
    # answer to a repetition after all of it was done.
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
    # Only appends to a stream with followers are announced: NOTIFY makes commits wait for each other.
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


_FIRST: tuple[str, ...] = (*TABLES, *GUARDS, *ACCESS, *APPENDS, *LEASES, *KEEPING, *JOBS, *row_security())

# A restored backup contains only the lives up to its own time. A life therefore also belongs to one table, which every
# restore of a dump creates again, and its number is at least the second in which it began: no token that was issued
# after the backup is issued again.
_SECOND: tuple[str, ...] = (
    "ALTER TABLE {s}.lives ALTER COLUMN number TYPE bigint",
    "ALTER TABLE {s}.lives ADD COLUMN place oid NOT NULL DEFAULT 0",
    "ALTER TABLE {s}.lives DROP CONSTRAINT lives_pkey, ADD PRIMARY KEY (began, place)",
    "UPDATE {s}.lives SET place = '{s}.lives'::regclass",
    """INSERT INTO {s}.lives(number, began, place) SELECT 0, pg_postmaster_start_time(), '{s}.lives'::regclass
        WHERE NOT EXISTS (SELECT FROM {s}.lives)""",
    """CREATE OR REPLACE FUNCTION {s}.first_token(p_token bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
    DECLARE life bigint; here oid := '{s}.lives'::regclass;
    BEGIN
        SELECT number INTO life FROM lives WHERE began = pg_postmaster_start_time() AND place = here;
        IF life IS NULL THEN
            LOCK TABLE lives IN EXCLUSIVE MODE;
            INSERT INTO lives(number, began, place)
                SELECT greatest(coalesce(max(number) + 1, 0), extract(epoch FROM clock_timestamp())::bigint),
                    pg_postmaster_start_time(), here FROM lives
                ON CONFLICT DO NOTHING;
            SELECT number INTO life FROM lives WHERE began = pg_postmaster_start_time() AND place = here;
            -- The number of this life must not be lost, even in a transaction that need not be durable otherwise.
            PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
        RETURN greatest(p_token, life * 1048576) + 1;
    END $$""",
)

# A unique index of a table with partitions must contain the column of the partitions, but the identity of a writer is
# unique across all streams. It therefore has a table of its own, kept by triggers, so that an append in progress, whose
# function is still the one of the version before, keeps it too. The calls are the same as before: programs that run go
# on, and are refused when they open the store again.
_WRITERS = (
    """CREATE TRIGGER event_of_writer BEFORE INSERT ON {s}.events FOR EACH ROW WHEN (NEW.writer_seq = 1)
        EXECUTE FUNCTION {s}.know_writer()""",
    """CREATE TRIGGER event_of_no_writer AFTER DELETE ON {s}.events FOR EACH ROW WHEN (OLD.writer_seq = 1)
        EXECUTE FUNCTION {s}.forget_writer()""",
)
_THIRD: tuple[str, ...] = (
    # As every append does, first the streams: nothing waits in a circle.
    "LOCK TABLE {s}.streams, {s}.events IN ACCESS EXCLUSIVE MODE",
    """CREATE TABLE {s}.writers(
        project integer NOT NULL, writer text COLLATE "C" NOT NULL, stream bigint NOT NULL, version bigint NOT NULL,
        PRIMARY KEY (project, writer))""",
    "INSERT INTO {s}.writers SELECT project, writer, stream, version FROM {s}.events WHERE writer_seq = 1",
    """CREATE FUNCTION {s}.know_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO {s}.writers VALUES (NEW.project, NEW.writer, NEW.stream, NEW.version); RETURN NEW;
    END $$""",
    """CREATE FUNCTION {s}.forget_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM {s}.writers WHERE project = OLD.project AND writer = OLD.writer; RETURN NULL;
    END $$""",
    *_WRITERS,
    "DROP INDEX {s}.event_writer",
    *APPENDS_3,
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND, _THIRD)
SCHEMA_VERSION = len(MIGRATIONS)
LOCK_WAIT = "20s"


def prepare_schema(access: PostgresAccess) -> None:
    """Create the schema if there is none; otherwise require the current version."""
    present = schema_version(access)
    if present == 0:
        access.require_writable()
        migrate(access)
        present = schema_version(access)
    require_version(access, present)


def require_version(access: PostgresAccess, present: int) -> None:
    if present > SCHEMA_VERSION:
        raise NewerSchema(f"{access.address.shown} has schema {present}; this version supports {SCHEMA_VERSION}")
    if present < SCHEMA_VERSION:
        raise StoreUnavailable(
            f"{access.address.shown} has schema {present}, older than {SCHEMA_VERSION}",
            code="storage_unsuitable",
            hint="ask its owner to upgrade it: workpacket runtime store upgrade",
        )


def schema_version(access: PostgresAccess) -> int:
    """Return the version; 0 if there is no schema."""
    (found,) = access.one("SELECT to_regclass(%s) IS NOT NULL", (_table(access, "schema_migrations"),))
    if not found:
        return 0
    (version,) = access.one("SELECT coalesce(max(version), 0) FROM {s}.schema_migrations")
    return int(version)


def migrate(access: PostgresAccess, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> int:
    """Apply the missing migrations; return how many were applied."""
    return access.doing(lambda connection: _migrate(access, connection, migrations))


def _migrate(access: PostgresAccess, connection: Connection, migrations: tuple[tuple[str, ...], ...]) -> int:
    with _changing(access, connection):
        (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
        if encoding != "UTF8":
            raise StoreUnavailable(
                f"{access.address.shown}: the database is in {encoding}, not UTF8", code="storage_unsuitable"
            )
        connection.execute(access.statement("CREATE SCHEMA IF NOT EXISTS {s}"))
        connection.execute(
            access.statement(
                "CREATE TABLE IF NOT EXISTS {s}.schema_migrations("
                "version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
            )
        )
        (present,) = connection.execute(
            access.statement("SELECT coalesce(max(version), 0) FROM {s}.schema_migrations")
        ).fetchone() or (0,)
        for version, statements in enumerate(migrations[present:], start=present + 1):
            for text in statements:
                connection.execute(access.statement(text))  # a constant of this package
            connection.execute(access.statement("INSERT INTO {s}.schema_migrations VALUES (%s)"), (version,))
        if present < len(migrations):
            connection.execute(access.statement("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {s} FROM PUBLIC"))
    return len(migrations) - int(present)


# ---- partitions --------------------------------------------------------------------------------------------------

STREAMS_EACH = 1_000_000  # how many streams share a partition
_LARGE = ("events", "payloads")  # the tables that grow with every event
_KEEPING_EVENTS = (*GUARDS[2:], *_WRITERS)

# The tables that are there become the first partition as they are: they are read once, and not copied. Those who could
# read a table can read the new one, and no role can read a partition past the policies of its table.
_FIRST_PARTITION = """DO $$
    DECLARE
        name text; granted record;
        until bigint := {each} * (1 + (SELECT coalesce(max(id), 0) FROM {s}.streams) / {each});
    BEGIN
        INSERT INTO {s}.room VALUES (until, until);
        FOREACH name IN ARRAY ARRAY['events', 'payloads'] LOOP
            EXECUTE format('ALTER TABLE {s}.%I ATTACH PARTITION {s}.%I FOR VALUES FROM (MINVALUE) TO (%s)', name,
                name || '_0', until);
            FOR granted IN
                SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
                FROM pg_class c, aclexplode(c.relacl) a
                WHERE c.oid = format('{s}.%I', name || '_0')::regclass AND a.grantee <> c.relowner
            LOOP
                EXECUTE format('GRANT SELECT ON {s}.%I TO %s', name, granted.role);
                EXECUTE format('REVOKE ALL ON {s}.%I FROM %s', name || '_0', granted.role);
            END LOOP;
        END LOOP;
    END $$"""
# Adding a stream makes the next partition when half of the last one is used. Making it holds up no append, except those
# that already need it. `made` is where the partitions end. Streams below `until` use theirs without a lock: it is moved
# by a later transaction, since others may see what was committed a moment before they know the new partition.
_ROOM = """CREATE FUNCTION {s}.make_room() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        known bigint; first bigint; name text; part text;
        lock bigint := hashtextextended('workpacket room ' || TG_RELID, 0);
    BEGIN
        SELECT until, made INTO known, first FROM {s}.room;
        IF NEW.id < known AND known = first AND NEW.id + {each} / 2 < first THEN RETURN NEW; END IF;
        IF NEW.id >= known THEN
            PERFORM pg_advisory_xact_lock(lock);
        ELSIF NOT pg_try_advisory_xact_lock(lock) THEN
            RETURN NEW;
        END IF;
        SELECT made, made INTO known, first FROM {s}.room;
        WHILE NEW.id + {each} / 2 >= first LOOP
            FOREACH name IN ARRAY ARRAY['events', 'payloads'] LOOP
                part := format('%I.%I', TG_TABLE_SCHEMA, name || '_' || first);
                CONTINUE WHEN to_regclass(part) IS NOT NULL;  -- this transaction began before; it will be repeated
                EXECUTE format('CREATE TABLE %s (LIKE {s}.%I INCLUDING ALL)', part, name);
                EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
                EXECUTE format('ALTER TABLE {s}.%I ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', name, part,
                    first, first + {each});
                CONTINUE WHEN name = 'payloads';
                EXECUTE format('CREATE TRIGGER events_all_stay BEFORE TRUNCATE ON %s FOR EACH STATEMENT '
                    'EXECUTE FUNCTION {s}.refuse_change()', part);
            END LOOP;
            first := first + {each};
        END LOOP;
        UPDATE {s}.room SET until = known, made = first;
        RETURN NEW;
    END $$"""


def partition(access: PostgresAccess, each: int = STREAMS_EACH) -> bool:
    """Divide the large tables by ranges of this many streams; return False if they are divided already."""
    require_version(access, schema_version(access))
    return access.doing(lambda connection: _partition(access, connection, each))


def partitions(access: PostgresAccess) -> int:
    """Return how many partitions the events have; 0 if they are one table."""
    (count,) = access.one(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)", (_table(access, "events"),)
    )
    return int(count)


def _partition(access: PostgresAccess, connection: Connection, each: int) -> bool:
    with _changing(access, connection):
        connection.execute(
            access.statement("LOCK TABLE {s}.streams, {s}.events, {s}.payloads IN ACCESS EXCLUSIVE MODE")
        )
        found = connection.execute("SELECT 1 WHERE to_regclass(%s) IS NOT NULL", (_table(access, "room"),)).fetchone()
        if found is None:
            for text in _divided(each):
                connection.execute(access.statement(text))
    return found is None


def _divided(each: int) -> tuple[LiteralString, ...]:
    renamed = (
        statement
        for table in _LARGE
        for statement in (
            f"DROP POLICY mine ON {{s}}.{table}",
            f"ALTER TABLE {{s}}.{table} RENAME TO {table}_0",
            f"CREATE TABLE {{s}}.{table} (LIKE {{s}}.{table}_0 INCLUDING ALL) PARTITION BY RANGE (stream)",
        )
    )
    return (
        "DROP TRIGGER events_stay_as_they_are ON {s}.events",
        "DROP TRIGGER events_stay ON {s}.events",
        "DROP TRIGGER event_of_writer ON {s}.events",
        "DROP TRIGGER event_of_no_writer ON {s}.events",
        "CREATE TABLE {s}.room(until bigint NOT NULL, made bigint NOT NULL)",
        *renamed,
        *(text.replace("{each}", str(each)) for text in (_FIRST_PARTITION, _ROOM)),
        *_KEEPING_EVENTS,
        *row_security(_LARGE),
        "CREATE TRIGGER stream_has_room BEFORE INSERT ON {s}.streams FOR EACH ROW EXECUTE FUNCTION {s}.make_room()",
        "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {s} FROM PUBLIC",
    )


@contextmanager
def _changing(access: PostgresAccess, connection: Connection) -> Iterator[None]:
    """Change tables in one transaction. Appends wait behind one that waits for a lock, so it does not wait for longer
    than programs are patient."""
    try:
        with connection.transaction():
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('workpacket ' || %s, 0))", (access.address.schema,)
            )
            connection.execute("SELECT set_config('lock_timeout', %s, true)", (LOCK_WAIT,))
            yield
    except errors.LockNotAvailable:
        raise StoreUnavailable(
            f"{access.address.shown}: another transaction has used the tables for {LOCK_WAIT}",
            code="store_busy",
            hint="wait until backups and other long queries have ended, then try again",
        ) from None


def _table(access: PostgresAccess, name: str) -> str:
    return sql.Identifier(access.address.schema, name).as_string(None)
