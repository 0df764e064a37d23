"""Every figure, drawn by matplotlib: by type of result, and its way onto a page."""
