"""`tandem bench overload`: what a deployment does with more than it can answer, beside the same Triton without Tandem.

A model that only sleeps stands for an accelerator, so that its capacity is known and takes none of the machine's cores.
`loads.py` says what is offered and when, `client.py` is the process that sends it, `figures.py` what has to come of it.
"""
