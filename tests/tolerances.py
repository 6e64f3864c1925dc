"""The only tolerances of the suite. Anything looser than these needs a reason here."""

EXACT = {"rtol": 0.0, "atol": 0.0}
FLOAT64 = {"rtol": 1e-9, "atol": 1e-9}
FLOAT32 = {"rtol": 1e-5, "atol": 1e-6}
BFLOAT16 = {"rtol": 1e-2, "atol": 1e-2}
ORACLE = {"rtol": 0.0, "atol": 1e-7}  # others add 1e-8 to counts, or keep constants in float32
LOSS_BY_STRATEGY = 2e-5  # a loss of about 1 after 12 steps whose sums ran in another order
LOGP_OF_EXPORT = 1e-5  # an adapter that was merged into its weights
