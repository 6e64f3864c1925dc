"""Other weights, and how far an engine's log-probabilities are from a model's."""

import copy

import torch
from ragged import MODEL, plain_logp

GAP = 5e-4  # nats, float32 on both sides; 5e-6 was measured


def moved(model, seed):
    """The model with every weight moved: nothing that a stale copy could pass for."""
    other = copy.deepcopy(model)
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=noise))
    return other


def gap(turns, samples, model=MODEL):
    """The largest difference in nats to a plain forward pass of `model`."""
    return max(
        float((torch.tensor(sample.logp) - plain_logp(request, sample, model)).abs().max())
        for request, sample in zip(turns, samples, strict=True)
    )
