"""Whisper's network: its encoder, and its decoder layer by layer.

The architecture is that of Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision";
the weights are named and joined as CTranslate2 does it. Shapes: B windows, K beams of each, S frames that the
encoder gives, D values.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from workers.whisper.backend import MAX_TOKENS

Tensor = torch.Tensor

AUDIO_FRAMES = 1500  # that the encoder gives for 30 s
# Attention on a GPU wants multiples of 8.
PADDED_FRAMES = 1504


@dataclass(frozen=True, slots=True)
class Linear:
    """A matrix product with a bias."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation."""

    gamma: Tensor
    beta: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gamma.shape, self.gamma, self.beta)


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Two products with GELU between them."""

    norm: Norm
    inner: Linear
    outer: Linear

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.outer(F.gelu(self.inner(self.norm(x))))


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of `heads` heads. `inner`: query, key and value joined, or the query alone."""

    norm: Norm
    inner: Linear
    memory: Linear | None  # key and value of the encoder's output, joined
    outer: Linear
    heads: int

    def split(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Joined values (B, length, parts x D) as parts of shape (B, heads, length, D / heads)."""
        batch, length, _ = x.shape
        return x.reshape(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def queries(self, x: Tensor) -> tuple[Tensor, ...]:
        """The query, and key and value of self-attention."""
        return self.split(self.inner(self.norm(x)), 3 if self.memory is None else 1)

    def attend(
        self,
        x: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """`x` with what the query finds. `bias` is added to the logits: 0, or minus infinity."""
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal)
        return x + self.outer(found.transpose(1, 2).flatten(2))


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """Attention to the text so far and to the audio, then a feed-forward network."""

    text: Attention
    audio: Attention
    feed_forward: FeedForward


class Network:
    """All weights of a model."""

    def __init__(self, weights: Mapping[str, Tensor], heads: tuple[int, int]) -> None:
        """`heads`: of the encoder and of the decoder."""
        self._weights = weights
        self._convolutions = [
            (weights[f"encoder/{name}/weight"], weights[f"encoder/{name}/bias"])
            for name in ("conv1", "conv2")
        ]
        self._audio_positions = weights["encoder/position_encodings/encodings"]
        self._encoder = [
            (self._attention(f"{layer}/self_attention", heads[0]), self._feed_forward(layer))
            for layer in self._layers("encoder")
        ]
        self._encoder_norm = self._norm("encoder/layer_norm")
        self.embeddings = weights["decoder/embeddings/weight"]
        self.positions = weights["decoder/position_encodings/encodings"][:MAX_TOKENS]
        self.layers = [
            DecoderLayer(
                self._attention(f"{layer}/self_attention", heads[1]),
                self._attention(f"{layer}/attention", heads[1]),
                self._feed_forward(layer),
            )
            for layer in self._layers("decoder")
        ]
        self._decoder_norm = self._norm("decoder/layer_norm")
        self._projection = self._linear("decoder/projection")
        self.heads = heads[1]
        self.width = self.embeddings.shape[1]
        self.vocabulary = self.embeddings.shape[0]
        self.mel_bins = self._convolutions[0][0].shape[1]

    def encode(self, features: Tensor) -> Tensor:
        """From spectrograms (B, mel bins, 2 x S) to (B, S, D)."""
        (first, first_bias), (second, second_bias) = self._convolutions
        x = F.gelu(F.conv1d(features, first, first_bias, padding=1))
        x = F.gelu(F.conv1d(x, second, second_bias, stride=2, padding=1)).transpose(1, 2)
        x = x + self._audio_positions[: x.shape[1]]
        for attention, feed_forward in self._encoder:
            x = feed_forward(attention.attend(x, *attention.queries(x)))
        return self._encoder_norm(x)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Tokens at positions, both (B, length), as the decoder's first layer gets them: (B, length, D)."""
        return F.embedding(tokens, self.embeddings) + F.embedding(positions, self.positions)

    def logits(self, x: Tensor) -> Tensor:
        """The logits of the next tokens, in float32: (…, vocabulary)."""
        return self._projection(self._decoder_norm(x)).float()

    def clear(self) -> None:
        """Drop all weights."""
        self.__dict__.clear()

    def _layers(self, part: str) -> list[str]:
        names = {name.split("/")[1] for name in self._weights if name.startswith(f"{part}/layer_")}
        return [f"{part}/layer_{number}" for number in range(len(names - {"layer_norm"}))]

    def _attention(self, name: str, heads: int) -> Attention:
        *inner, outer = (
            self._linear(f"{name}/linear_{number}")
            for number in range(3)
            if f"{name}/linear_{number}/weight" in self._weights
        )
        memory = inner[1] if len(inner) > 1 else None
        return Attention(self._norm(f"{name}/layer_norm"), inner[0], memory, outer, heads)

    def _feed_forward(self, layer: str) -> FeedForward:
        name = f"{layer}/ffn"
        return FeedForward(
            self._norm(f"{name}/layer_norm"),
            self._linear(f"{name}/linear_0"),
            self._linear(f"{name}/linear_1"),
        )

    def _linear(self, name: str) -> Linear:
        return Linear(self._weights[f"{name}/weight"], self._weights.get(f"{name}/bias"))

    def _norm(self, name: str) -> Norm:
        return Norm(self._weights[f"{name}/gamma"], self._weights[f"{name}/beta"])
