"""What a run has found, made into pages and files that people and programs read: HTML, SVG, JSON. No I/O but the files written."""
