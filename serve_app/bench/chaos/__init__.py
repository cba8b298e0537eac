"""`tandem bench chaos`: faults in a deployment of their own, under load, and what its clients see of them."""
