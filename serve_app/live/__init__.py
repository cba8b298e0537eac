"""`tandem validate --live`: the spec given to a real Triton and to Ray Serve's own schema, on this machine."""
