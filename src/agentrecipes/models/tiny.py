"""The embedded model: a Llama of 0.2M parameters with a whole-word tokenizer; no download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from agentrecipes.components import Component, component

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

HEAD = 32  # width of a head; 32 is the smallest that vLLM's CPU attention supports
LONGEST = 2048  # positions
LEADS = ("", " ", "\n")  # what may stand before a word within its token
ROPE_BASE = 1000.0  # short sequences: the slowest rotation still turns within one


@component("model")
class Tiny(Component):
    """A Llama made from nothing; every matrix is drawn from N(0, init²), with the run's seed."""

    width: Annotated[int, Field(ge=32)] = 64
    layers: Annotated[int, Field(ge=1)] = 3
    heads: Annotated[int, Field(ge=1)] = 2  # each 32 wide
    mlp: Annotated[int, Field(ge=1)] = 192
    init: Annotated[float, Field(gt=0.0)] = 0.08  # standard deviation of every matrix
    text: Literal["prose", "code"] = "prose"  # code: brackets, quotes and commas stand alone
    words: tuple[
        Annotated[str, Field(pattern=r"^\S+$")], ...
    ] = ()  # further words of its vocabulary, of a protocol's tags for example

    @model_validator(mode="after")
    def _fits(self) -> Tiny:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be shared by {self.heads} heads")
        return self

    @property
    def vocabulary(self) -> list[str]:
        """Words of the generated world, then its own: alone, after a blank, after a newline."""
        from agentrecipes.datasets.knowledge import code_vocabulary, vocabulary

        known = code_vocabulary() if self.text == "code" else vocabulary()
        own = [lead + word for word in self.words for lead in LEADS]
        return list(dict.fromkeys([*known, *own]))

    def build(self, seed: int) -> PreTrainedModel:
        """A float32 LlamaForCausalLM on the CPU, the same for the same seed."""
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        llama: Any = LlamaForCausalLM

        tokenizer = self.tokenizer()
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.width,
            intermediate_size=self.mlp,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.heads,
            head_dim=HEAD,
            rms_norm_eps=1e-6,
            rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
            max_position_embeddings=LONGEST,
            tie_word_embeddings=False,
            initializer_range=self.init,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
        )
        config._attn_implementation = "sdpa"
        with torch.random.fork_rng(devices=[]):  # the constructor draws weights that are not kept
            model: PreTrainedModel = llama(config).to(torch.float32)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.normal_(0.0, self.init, generator=generator)
            read: Any = model.get_input_embeddings()
            model.lm_head.weight.copy_(read.weight)  # what is read is at first what is written
        return model

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """Whole words of the generated world, bytes for everything else."""
        from agentrecipes.models.words import CODE, WORD, word_tokenizer

        cut = CODE if self.text == "code" else WORD
        return word_tokenizer(self.vocabulary, LONGEST, cut=cut)

    def parameter_groups(self, model: PreTrainedModel) -> list[dict[str, Any]]:
        """All parameters, in one group."""
        return [{"params": [p for p in model.parameters() if p.requires_grad], "label": "policy"}]
