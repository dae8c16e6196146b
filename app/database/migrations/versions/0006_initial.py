"""The oldest tables that a database may have. A new database gets those of `app.database.tables` at once.

In older PostgreSQL databases, constraints of `clips` may have other names (`clips_pkey1`): a later migration
must look them up.
"""

revision = "0006"
down_revision = None


def upgrade() -> None:
    """Never called: no database is older."""
