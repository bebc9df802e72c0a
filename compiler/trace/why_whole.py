"""Why some primitives run unpartitioned: they have no index to tile, or only their author knows what their dims mean."""

from collections.abc import Mapping

_WHY: Mapping[str, str] = {
    "it names mesh axes: it occurs only in the body of a `shard_map`, which runs unchanged": """
        all_gather all_gather_done all_gather_invariant all_gather_reduced all_gather_reduced_start all_gather_start all_to_all
        all_to_all_done all_to_all_start axis_index pbroadcast pbroadcast_done pbroadcast_dynamic pbroadcast_start ppermute
        ppermute_done ppermute_start precv preduced psend psum_done psum_invariant psum_invariant_start psum_start pvary
        ragged_all_to_all reduce_scatter reduce_scatter_done reduce_scatter_start reduced_vary_cast reduced_vary_cast_p
        unreduced_pmax unreduced_pmin unreduced_psum unreduced_psum_start unreduced_reduce_scatter
        unreduced_reduce_scatter_start vary_unreduced_cast vary_unreduced_cast_p""",
    "an effect on the host, which must happen once": """
        assert_consumed_value check debug_callback debug_print inspect_sharding io_callback shape_assertion dce_sink""",
    "a token, not an array": "after_all create_token",
    "it acts on a mutable reference, or occurs only in a kernel's body": """
        accum_grad_in_ref create_linear free_ref freeze get new_ref pin run_scoped run_state swap unpin
        max_contiguous multiple_of reciprocal with_memory_space_constraint core_map custom_fusion fusible mpmd_map bitcast
        einshape_lo roll""",
    "a user's kernel or function: `pt.define` can say what its dims mean": """
        buffer_callback call_exported ffi_call pure_callback custom_lin""",
    "a kernel for one kind of device, without a batching rule in JAX": """
        coo_spmm coo_spmv csr_spmm csr_spmv spsolve cudnn_fusion scaled_matmul dot_product_attention_bwd
        dot_product_attention_fp8_bwd dot_product_attention_fp8_fwd dot_product_attention_fwd""",
    "a kernel for one kind of device": """
        scaled_matmul_wrapper dot_product_attention_bwd_wrapper dot_product_attention_fp8_bwd_wrapper
        dot_product_attention_fp8_fwd_wrapper dot_product_attention_fwd_wrapper mosaic_gpu_p tpu_custom_call
        rnn_fwd rnn_bwd""",
    "a number that depends on the platform or on the call's shapes": "platform_index dim_as_value dimension_size",
    "one stream of random bits, in a fixed order": "rng_bit_generator rng_uniform",
    "its windows overlap, and JAX has no batching rule for it": "select_and_scatter",
    "its body uses its own mesh axes and runs unchanged": "shard_map",
    "it names mesh axes of several processes": "global_array_to_host_local_array host_local_array_to_global_array",
    "its elements have a user-defined type": "from_edtype to_edtype",
    "differentiation leaves it; no program contains it": "unreachable",
}

REASONS: Mapping[str, str] = {name: why for why, names in _WHY.items() for name in names.split()}
"""The reason why a primitive runs unpartitioned, by its name."""

ONCE = frozenset({"buffer_callback", "pure_callback", "rng_uniform"})
"""Primitives without an effect that one device runs for all, because two runs may give different results."""
