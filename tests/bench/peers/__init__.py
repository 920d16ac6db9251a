"""What people would use instead, measured on the same server with the same texts.

Each peer is a library, in a process of its own that ``loop`` leads. What they need is installed
beside the product and never into it, from ``requirements-bench.lock``. ``ours`` is a peer too: the
services of the broker without its wire.
"""
