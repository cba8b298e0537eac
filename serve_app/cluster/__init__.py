"""`tandem up`, `down` and `status`: a Ray head node on this machine with the application deployed on it."""
