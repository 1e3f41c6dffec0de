"""How a Kubernetes Service's packets really travel: the library behind the fixtures.

The data flows inventory → channel → experiments → observation → parse → model; each step has a module or folder of that name.
"""
