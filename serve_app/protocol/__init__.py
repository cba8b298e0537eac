"""The Open Inference Protocol over HTTP and gRPC, as a wall in front of Triton.

What a client sends is parsed, checked against the spec's tensors and written anew: of its bytes only the checked
contents of tensors go on. Triton's answers go back as they are, its errors without the names of its insides.
"""
