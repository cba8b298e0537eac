"""An existing Triton model repository → a Tandem spec that renders to the same configurations.

`repository` reads the folder, `comments` and `bls` what its configurations and code say to people only, `completion`
fills in what Triton would, `entries` writes each model in the spec's words, `deployment` the rest of the spec,
`equivalence` compares what the spec renders to with what was there.
"""
