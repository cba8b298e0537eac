"""Tandem: a Ray Serve application whose inference is done by an embedded Triton, both configured from one spec."""
