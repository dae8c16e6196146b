"""The first tables: jobs, their clips, transcripts and events, and webhooks to be sent."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
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
        sa.Column("deaths", sa.Integer, nullable=False),
        sa.Column("result", sa.LargeBinary),
    )
    op.create_table("transcripts", _job_number(), sa.Column("content", sa.LargeBinary, nullable=False))
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


def downgrade() -> None:
    for table in ("deliveries", "events", "transcripts", "clips", "jobs"):
        op.drop_table(table)
