"""Rows per result -> SERPs: values, names and their ids, rows on disk, pages."""
