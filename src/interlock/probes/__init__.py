"""Pull sensors, one module per kind: each looks once and says what it saw. When to look is decided in `control`.

They may use what `jobs` knows of the outside (guarded addresses, AWS clients). They observe: a look changes nothing.
"""
