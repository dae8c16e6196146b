"""The tables. A new database gets them at once; `migrations` changes those of older databases.

The table `search` is of another kind in each database. `app.jobs.storage.search` uses it.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

# SQLite generates a primary key only if its type is INTEGER.
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _job_number() -> sa.Column[int]:
    return sa.Column(
        "job_number", _NUMBER, sa.ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True
    )


jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(40), nullable=False, unique=True),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("started_at", sa.Float),
    sa.Column("finished_at", sa.Float),
    sa.Column("filename", sa.Text, nullable=False),
    sa.Column("file", sa.String(40)),
    sa.Column("size", sa.BigInteger),
    sa.Column("sha256", sa.String(64)),
    sa.Column("url", sa.Text),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("webhook_url", sa.Text),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("stage", sa.String(16), nullable=False),
    sa.Column("done_s", sa.Float, nullable=False),
    sa.Column("total_s", sa.Float),
    sa.Column("clips_done", sa.Integer, nullable=False),
    sa.Column("clips_total", sa.Integer),
    sa.Column("duration", sa.Float),
    sa.Column("language", sa.String(16)),
    sa.Column("languages", sa.JSON(none_as_null=True)),  # and their parts, if several are spoken
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("failed_spans", sa.JSON, nullable=False),
    sa.Column("identity", sa.String(64), key="result_digest"),
    sa.Column("pcm", sa.Text),
    sa.Column("audio_tracks", sa.JSON(none_as_null=True)),  # of the recording, once it is decoded
    sa.Column("warnings", sa.JSON(none_as_null=True)),  # about the recording, once it is decoded
    # How often the whole service has ended in the middle of it.
    sa.Column("interruptions", sa.Integer, nullable=False, server_default="0"),
    sa.Column("revision", sa.Integer, nullable=False, server_default="0"),  # the newest; 0 is the original
    sa.Column("indexed", sa.Boolean, nullable=False, server_default=sa.false()),  # not used
    sa.Column("request_id", sa.String(128)),  # of the request that submitted the job
    sa.Column("traceparent", sa.String(55)),
    sa.Column("corrected_at", sa.Float),  # when people last changed the transcript
    sa.Column("excerpt", sa.Text),  # the beginning of the transcript
    sa.Column("speakers", sa.JSON(none_as_null=True)),  # of the transcript
    sa.Column("title", sa.Text),
    sa.Column("notes", sa.Text),
    sa.Column("tags", sa.JSON(none_as_null=True)),
    # Its transcript gives it a title, unless somebody has done so.
    sa.Column("title_from_text", sa.Boolean, nullable=False, server_default=sa.false()),
    # The id of the job that this one transcribes again, and what becomes of its transcript. No foreign key:
    # SQLite cannot add one to a table.
    sa.Column("parent", sa.String(40)),
    sa.Column("parent_revision", sa.Integer),
    sa.Column("keep_corrections", sa.Boolean),
    # The end or `corrected_at`, as a time of service. It stands still in the trash.
    sa.Column("retained_since", sa.Float),
    # Since when it is in the trash, as a time of service. Its children are there with it.
    sa.Column("trashed_at", sa.Float),
    sa.Column("has_terms", sa.Boolean, nullable=False, server_default=sa.false()),  # in `job_terms`
    # The front end that runs it, or did so last, and its epoch then: only the writes of that count.
    sa.Column("front_end", sa.String(64)),
    sa.Column("epoch", sa.BigInteger),
    sa.UniqueConstraint("owner", "idempotency_key", name="jobs_idempotency"),
    sa.Index("jobs_by_status", "status", "number"),
    sa.Index("jobs_by_owner", "owner", "number"),
    # Has all that `bytes_by_owner` needs.
    sa.Index("jobs_by_size", "owner", "file", "size", "duration", "revision"),
    # Partial: lists of all jobs without a parent must not use it.
    sa.Index(
        "jobs_by_parent",
        "parent",
        sqlite_where=sa.text("parent IS NOT NULL"),
        postgresql_where=sa.text("parent IS NOT NULL"),
    ),
    sa.Index(
        "jobs_by_trash",
        "owner",
        "trashed_at",
        sqlite_where=sa.text("trashed_at IS NOT NULL"),
        postgresql_where=sa.text("trashed_at IS NOT NULL"),
    ),
    sqlite_autoincrement=True,  # the number of a deleted job is never reused
)

# The results of clips of jobs that have not succeeded, and how many workers crashed on each clip
# alone. Those of `published` clips are the transcript so far, without a gap from its start.
clips = sa.Table(
    "clips",
    metadata,
    _job_number(),
    sa.Column("start", sa.BigInteger, primary_key=True),
    sa.Column("end", sa.BigInteger, primary_key=True),
    sa.Column("language", sa.String(16), primary_key=True),  # as requested; "" if none was
    sa.Column(
        "channel", sa.Integer, primary_key=True, autoincrement=False, server_default="0"
    ),  # 0 for the mix of all
    sa.Column("deaths", sa.Integer, key="crash_count", nullable=False),
    sa.Column("result", sa.LargeBinary),
    sa.Column("published", sa.Boolean, nullable=False, server_default=sa.false()),
)

# The voices in the clips of a job that says who speaks, from `pack_voices`, to find its speakers again. They
# expire with its recording.
voices = sa.Table(
    "voices",
    metadata,
    _job_number(),
    sa.Column("start", sa.BigInteger, primary_key=True),
    sa.Column("end", sa.BigInteger, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

# The voices that the client has sent with their names, in order, until no further run can need them.
known_speakers = sa.Table(
    "known_speakers",
    metadata,
    _job_number(),
    sa.Column("place", sa.Integer, key="position", primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("embedding", sa.LargeBinary, nullable=False),  # 32-bit floats, little-endian
    sa.Column("model", sa.Text, nullable=False),  # its identity
)

# The names and terms of owners, as JSON: see `app.transcript.term_list`.
terms = sa.Table(
    "terms",
    metadata,
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
)

# Those that counted when a job was submitted. They go with it: it may run again.
job_terms = sa.Table("job_terms", metadata, _job_number(), sa.Column("content", sa.Text, nullable=False))

# How much audio was transcribed. It outlives jobs, and names no recording.
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("day", sa.String(10), primary_key=True),  # of UTC, as ISO 8601 has it
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("jobs", sa.Integer, nullable=False),  # also requests and streams
    sa.Column("seconds", sa.Float, nullable=False),
)

transcripts = sa.Table(
    "transcripts", metadata, _job_number(), sa.Column("content", sa.LargeBinary, nullable=False)
)

# Corrected transcripts, by the number of the revision. The original is in `transcripts`.
revisions = sa.Table(
    "revisions",
    metadata,
    _job_number(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("changed", sa.Integer, nullable=False),  # segments that differ from the revision before
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("by_link", sa.Boolean, nullable=False, server_default=sa.false()),  # made by a shared link
    sa.Column("reason", sa.String(20)),  # of `app.jobs.corrections.Reason`
    sa.Column("restored", sa.Integer),  # the revision that it brings back
    sa.Column("author", sa.String(64)),  # the owner of the request, or the id of the shared link
)

# The segments of the newest transcript, for the search: see `app.jobs.passages`.
passages = sa.Table("passages", metadata, _job_number(), sa.Column("content", sa.LargeBinary, nullable=False))

peaks = sa.Table("peaks", metadata, _job_number(), sa.Column("content", sa.LargeBinary, nullable=False))

events = sa.Table(
    "events",
    metadata,
    _job_number(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("data", sa.Text, nullable=False),
)

# Webhooks to send. They outlive their jobs: the end of a deleted job is still announced.
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_at", sa.Float, nullable=False),  # a time of service
    sa.Column("owner", sa.String(64), nullable=False, server_default=""),  # of the job
    sa.Column("host", sa.Text, nullable=False, server_default=""),  # in the URL
    sa.Column("job_id", sa.String(40), nullable=False, server_default=""),
    sa.Column("type", sa.String(32), nullable=False, server_default=""),  # of the webhook
    sa.Index("deliveries_by_time", "next_at"),
    sa.Index("deliveries_by_job", "job_id"),
    sa.Index("deliveries_by_owner", "owner", "attempts", "next_at", "id"),
)

# Resumable uploads: their files are in the uploads folder under the id. `job_id`: the job that used it.
# The times are times of service.
uploads = sa.Table(
    "uploads",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("filename", sa.Text, nullable=False),
    sa.Column("metadata", sa.Text, nullable=False),  # as the client sent it
    sa.Column("size", sa.BigInteger, nullable=False),  # bytes of the complete file
    # The time of service (whole s) at which a front end has asked the one that appends to it to stop.
    sa.Column("unchecked_from", sa.BigInteger, key="wanted_at"),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("job_id", sa.String(40)),
    sa.Index("uploads_by_time", "expires_at"),
)

# Links that open one transcript for people without a key. Their tokens are stored nowhere. `expires_at` is a
# time of service.
shared_links = sa.Table(
    "shared_links",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("token_digest", sa.String(64), nullable=False, unique=True),
    sa.Column(
        "job_number", _NUMBER, sa.ForeignKey("jobs.number", ondelete="CASCADE"), nullable=False, index=True
    ),
    sa.Column("may_correct", sa.Boolean, nullable=False),
    sa.Column("has_audio", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("owner", sa.String(64), nullable=False, server_default=""),  # who has made it
    sa.Column("has_revisions", sa.Boolean, nullable=False, server_default=sa.false()),
)

# The secrets that sign links to audio and results. All owners with keys have one.
link_secrets = sa.Table(
    "link_secrets",
    metadata,
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)

# The time of service, in one row: see `app.jobs.storage.service_clock`.
service_clock = sa.Table(
    "service_clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("time", sa.Float, nullable=False),
    sa.Column("wall_time", sa.Float, nullable=False),  # the Unix time (s) when `time` was stored
)

# The server processes that share this database: see `app.database.front_ends`. No epoch is used twice.
front_ends = sa.Table(
    "front_ends",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False, unique=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("boot_id", sa.String(40), nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),  # of the tables that it knows
    sa.Column("expires_at", sa.Float, nullable=False),  # s, by the database's clock
)

# In one row, the oldest version of the tables whose programs may use these: see `connection.OLDEST_READER`.
readers = sa.Table("readers", metadata, sa.Column("oldest", sa.String(32), primary_key=True))

# What the service keeps to itself: tokens that the data folder also has.
secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)

_SEARCH = {
    "sqlite": (
        # The service has divided texts into words. The tokenizer separates them at spaces, and knows no
        # Unicode, so it never divides one further. The prefixes make queries of one to three letters fast.
        "CREATE VIRTUAL TABLE search "
        "USING fts5(words, details, detail=none, tokenize='ascii', prefix='1 2 3')",
        # A virtual table has no foreign keys.
        "CREATE TRIGGER search_of_deleted_job AFTER DELETE ON jobs "
        "BEGIN DELETE FROM search WHERE rowid = old.number; END",
    ),
    "postgresql": (
        "CREATE TABLE search (words TSVECTOR NOT NULL, details TSVECTOR NOT NULL DEFAULT '', "
        "job_number BIGINT PRIMARY KEY REFERENCES jobs (number) ON DELETE CASCADE)",
        # Without fast updates: after some jobs, one would wait for those of all.
        "CREATE INDEX search_by_words ON search USING gin ((words || details)) WITH (fastupdate = off)",
    ),
}
for _dialect, _statements in _SEARCH.items():
    for _statement in _statements:
        sa.event.listen(metadata, "after_create", sa.DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]
