"""`tandem bench`: measuring a service from outside, by load, latencies and refusals, and what Triton says meanwhile."""
