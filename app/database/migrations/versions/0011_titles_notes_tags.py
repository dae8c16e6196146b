"""Titles, notes and tags of jobs, which the search finds, and the sentences that it shows."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """The words of each job stay as they are: those of its file name are among them."""
    op.add_column("jobs", sa.Column("title", sa.Text))
    op.add_column("jobs", sa.Column("notes", sa.Text))
    op.add_column("jobs", sa.Column("tags", sa.JSON(none_as_null=True)))
    op.add_column("jobs", sa.Column("title_from_text", sa.Boolean, nullable=False, server_default=sa.false()))
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "passages",
        sa.Column("job_number", number, sa.ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        # A virtual table gets no more columns.
        op.execute("DROP TRIGGER search_of_deleted_job")
        op.execute("ALTER TABLE search RENAME TO search_before")
        op.execute(
            "CREATE VIRTUAL TABLE search USING "
            "fts5(words, details, detail=none, tokenize='ascii', prefix='1 2 3')"
        )
        op.execute("INSERT INTO search (rowid, words, details) SELECT rowid, words, '' FROM search_before")
        op.execute("DROP TABLE search_before")
        op.execute(
            "CREATE TRIGGER search_of_deleted_job AFTER DELETE ON jobs "
            "BEGIN DELETE FROM search WHERE rowid = old.number; END"
        )
    else:
        op.execute("ALTER TABLE search ADD COLUMN details TSVECTOR NOT NULL DEFAULT ''")
        op.execute("DROP INDEX search_by_words")
        op.execute(
            "CREATE INDEX search_by_words ON search USING gin ((words || details)) WITH (fastupdate = off)"
        )
