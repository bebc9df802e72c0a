"""A pattern with one part that is spelled wrong: the others stay as they are."""

import numpy as np

import partita as pt

layer = {"qkv": {"kernel": np.ones((8, 8), np.float32)}}
params = {"head": {"kernel": np.ones((8, 8), np.float32)}, "blocks": [layer, layer]}


def function(params: dict[str, object]) -> object:
    return params


plan = pt.plan(function, pt.Mesh(data=4), params)
plan.tile("params/blocks/*/qkv/kernal", 0, "data")
