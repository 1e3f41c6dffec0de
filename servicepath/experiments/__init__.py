"""I/O only, no verdict: each module asks nodes or the API something once and keeps what they said."""
