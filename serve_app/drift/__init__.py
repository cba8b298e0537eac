"""`tandem drift`: what runs, against the spec, and what a redeploy would do about each difference."""
