"""The SERPs of a log with the names of their ids, as plain dictionaries."""

from logeval.log.formats.registry import FORMATS


def named(log, *columns):
    """Query, user, items and clicks of each page, by name; more columns as they are."""
    rows = log.serps().to_pylist()
    names = log.names

    def one(kind, number):
        return None if number is None else names.name_of(kind, number)

    return [
        {
            "query": one("query", row["query_id"]),
            "user": one("user", row["user_id"]),
            "items": names.names_of("item", row["items"]),
            "clicks": row["clicks"],
        }
        | {column: row[column] for column in columns}
        for row in rows
    ]


def adds_up(log):
    """Whether every row is accounted for, once."""
    (name,) = set(log.manifest["formats"])
    format = FORMATS[name]
    return log.counts[format.unit] == sum(log.counts.get(count, 0) for count in format.accounts)


def some(counts):
    """Counts that are not 0."""
    return {key: value for key, value in counts.items() if value}
