"""Measuring a deployment from outside: load, latencies, refusals, and what Triton says about its batches."""
