"""The ways to reach a node: over ssh, or this very machine. Both are testinfra backends and run the same script."""
