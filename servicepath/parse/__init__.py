"""Text or bytes in, model out; no I/O. What cannot be read is a ParseError naming tool, line and text."""
