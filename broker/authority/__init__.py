"""Who calls, and what the owner says they may do.

``tokens`` turns the raw metadata of a call into a verified caller. ``checks`` asks the owner and
judges its answer. Nothing here is remembered between calls but signatures that were verified once
(``signatures``) and the public keys of issuers (``keys``): no grant, tenant or selection (004-01).
"""
