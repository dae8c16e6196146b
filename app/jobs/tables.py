"""The tables, as SQLAlchemy sees them; what makes them in a database stands in `migrations`."""

import sqlalchemy as sa

metadata = sa.MetaData()

# SQLite counts up a primary key by itself only where it is called INTEGER.
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
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("failed_spans", sa.JSON, nullable=False),
    sa.Column("identity", sa.String(64)),
    sa.Column("pcm", sa.Text),
    sa.UniqueConstraint("owner", "idempotency_key", name="jobs_idempotency"),
    sa.Index("jobs_by_status", "status", "number"),
    sqlite_autoincrement=True,  # the number of a deleted job is not given out again
)

# What was heard in a clip of an unfinished job, and how many workers have died of it.
clips = sa.Table(
    "clips",
    metadata,
    _job_number(),
    sa.Column("start", sa.BigInteger, primary_key=True),
    sa.Column("end", sa.BigInteger, primary_key=True),
    sa.Column("language", sa.String(16), primary_key=True),  # that was asked for; "" where none was
    sa.Column("deaths", sa.Integer, nullable=False),
    sa.Column("result", sa.LargeBinary),
)

transcripts = sa.Table(
    "transcripts", metadata, _job_number(), sa.Column("content", sa.LargeBinary, nullable=False)
)

events = sa.Table(
    "events",
    metadata,
    _job_number(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("data", sa.Text, nullable=False),
)

# Webhooks that are to be sent. They outlive their jobs: a deleted one still announces its end.
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_at", sa.Float, nullable=False),
    sa.Index("deliveries_by_time", "next_at"),
)
