"""The conformance kit: laws that every adapter must keep, for authors here and elsewhere.

An author writes a ``Harness`` (``harness.py``), asks ``plan.plan_for`` which laws apply, runs each
with ``law.run`` and prints ``plan.report``. The kit imports the contract and nothing else; it needs
no test runner. Shipped code never imports it.
"""
