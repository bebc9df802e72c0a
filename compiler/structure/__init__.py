"""What a plan's program looks like. It is found from how ops use values, never from the names of ops.

    products         products of the forward pass, parameters and inputs: where structure is looked for
    product_pairs    pairs of products over a range that nothing between them folds
    residual_stream  what the sums over an axis add up to: the activations between the parts of a model
    attention_keys   what attention reads at all positions
    vocabulary       tables that inputs look up, and what makes logits
    next_state       whether a result is computed from the argument that it replaces
    ranges           the ranges of a program: dims that belong together

Imports `plan` and `views`.
"""
