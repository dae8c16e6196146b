"""Alembic's way in: the caller brings the connection and the transaction."""

from alembic import context

from app.jobs.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter much of a table; Alembic then makes it anew
    compare_type=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
