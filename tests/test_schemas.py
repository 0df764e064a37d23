"""Schemas of the tables."""

from logeval.storage import schemas


def test_every_column_of_every_table_is_documented():
    for schema in schemas.TABLES.values():
        assert schema.metadata[b"doc"]
        assert all(field.metadata[b"doc"] for field in schema)
