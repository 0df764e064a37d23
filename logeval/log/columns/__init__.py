"""Files of columns (CSV, NDJSON, Parquet, Arrow) and data frames -> batches as they are stored."""
