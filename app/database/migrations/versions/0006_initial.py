"""All tables.

In older PostgreSQL databases, constraints of `clips` may have other names (`clips_pkey1`): a later migration
must look them up.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _job_number() -> sa.Column[int]:
    return sa.Column("job_number", NUMBER, sa.ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True)


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
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
        sa.Column("error", sa.JSON),
        sa.Column("failed_spans", sa.JSON, nullable=False),
        sa.Column("identity", sa.String(64)),
        sa.Column("pcm", sa.Text),
        sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
        sa.Column("indexed", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("request_id", sa.String(128)),
        sa.Column("traceparent", sa.String(55)),
        sa.Column("audio_tracks", sa.JSON),
        sa.UniqueConstraint("owner", "idempotency_key", name="jobs_idempotency"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobs_by_status", "jobs", ["status", "number"])
    op.create_table(
        "clips",
        _job_number(),
        sa.Column("start", sa.BigInteger, primary_key=True),
        sa.Column("end", sa.BigInteger, primary_key=True),
        sa.Column("language", sa.String(16), primary_key=True),
        sa.Column("channel", sa.Integer, primary_key=True, autoincrement=False, server_default="0"),
        sa.Column("deaths", sa.Integer, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("published", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table("transcripts", _job_number(), sa.Column("content", sa.LargeBinary, nullable=False))
    op.create_table(
        "revisions",
        _job_number(),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("changed", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table("peaks", _job_number(), sa.Column("content", sa.LargeBinary, nullable=False))
    op.create_table(
        "voices",
        _job_number(),
        sa.Column("start", sa.BigInteger, primary_key=True),
        sa.Column("end", sa.BigInteger, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "known_speakers",
        _job_number(),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("embedding", sa.LargeBinary, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        _job_number(),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Float, nullable=False),
    )
    op.create_index("deliveries_by_time", "deliveries", ["next_at"])
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("unchecked_from", sa.BigInteger),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("job_id", sa.String(40)),
    )
    op.create_index("uploads_by_time", "uploads", ["expires_at"])
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    if op.get_context().dialect.name == "sqlite":
        _create_search_of_sqlite()
    else:
        _create_search_of_postgresql()


def _create_search_of_sqlite() -> None:
    # The service has divided texts into words. The tokenizer separates them at spaces, and knows no Unicode,
    # so it never divides one further. The prefixes make queries of one to three letters fast.
    op.execute("CREATE VIRTUAL TABLE search USING fts5(words, detail=none, tokenize='ascii', prefix='1 2 3')")
    op.execute(  # a virtual table has no foreign keys
        "CREATE TRIGGER search_of_deleted_job AFTER DELETE ON jobs "
        "BEGIN DELETE FROM search WHERE rowid = old.number; END"
    )


def _create_search_of_postgresql() -> None:
    op.create_table("search", _job_number(), sa.Column("words", postgresql.TSVECTOR, nullable=False))
    # Without fast updates: after some jobs, one would wait for those of all.
    op.create_index(
        "search_by_words",
        "search",
        ["words"],
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )
