"""Whisper's network: its encoder, and the parts of its decoder's layers.

The architecture is that of Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision";
the weights are named and joined as CTranslate2 does it. Shapes: B windows, S frames that the encoder gives, D
values, H heads.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from workers.whisper.backend import MAX_TOKENS

Tensor = torch.Tensor

AUDIO_FRAMES = 1500  # that the encoder gives for 30 s
_LOGITS_MULTIPLE = 8  # so that all rows begin at such addresses that a GPU adds them up in one order


class Network:
    """All weights of a model. A part of it is named as its weights are, without the last words."""

    def __init__(self, weights: Mapping[str, Tensor], scalars: Mapping[str, int]) -> None:
        self._weights = dict(weights)
        self._heads = {part: scalars[f"{part}/num_heads"] for part in ("encoder", "decoder")}
        self.embeddings = self._padded_embeddings()
        self.vocabulary, self.width = self.embeddings.shape  # what fills it up is never likely
        self.heads = self._heads["decoder"]
        self.head_width = self.width // self.heads
        self.mel_bins = weights["encoder/conv1/weight"].shape[1]
        self.layers = self._layers("decoder")

    def _padded_embeddings(self) -> Tensor:
        """The weights of all tokens, which are those of the logits too: (vocabulary, D)."""
        embeddings = self._weights["decoder/embeddings/weight"]
        fill = -len(embeddings) % _LOGITS_MULTIPLE
        bias = self._weights.get("decoder/projection/bias", embeddings.new_zeros(len(embeddings)))
        self._weights["decoder/projection/bias"] = F.pad(bias, (0, fill), value=-torch.inf)
        padded = F.pad(embeddings, (0, 0, 0, fill))
        self._weights |= dict.fromkeys(("decoder/embeddings/weight", "decoder/projection/weight"), padded)
        return padded

    def _layers(self, part: str) -> list[str]:
        count = sum(
            name.startswith(f"{part}/layer_") and name.endswith("/ffn/layer_norm/beta")
            for name in self._weights
        )
        return [f"{part}/layer_{number}" for number in range(count)]

    def encode(self, features: Tensor) -> Tensor:
        """From spectrograms (B, mel bins, 2 x S) to (B, S, D)."""
        weights = self._weights
        x = features.transpose(1, 2)
        for name, stride in (("conv1", 1), ("conv2", 2)):
            weight, bias = weights[f"encoder/{name}/weight"], weights[f"encoder/{name}/bias"]
            around = F.pad(x, (0, 0, 1, 1)).unfold(1, weight.shape[2], stride)
            x = F.gelu(F.linear(around.flatten(2), weight.flatten(1), bias))
        x = x + weights["encoder/position_encodings/encodings"][: x.shape[1]]
        for layer in self._layers("encoder"):
            attention = f"{layer}/self_attention"
            x = self.feed_forward(layer, self.attend(attention, x, *self.queries(attention, x)))
        return self._norm("encoder", x)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Tokens at positions, both (B, length), as the decoder's first layer gets them: (B, length, D)."""
        encodings = self._weights["decoder/position_encodings/encodings"]
        return F.embedding(tokens, self.embeddings) + F.embedding(positions, encodings[:MAX_TOKENS])

    def queries(self, attention: str, x: Tensor) -> tuple[Tensor, ...]:
        """The query; in self-attention, also key and value. Each (B, H, length, D / H)."""
        return self._split(attention, self._linear(f"{attention}/linear_0", self._norm(attention, x)))

    def keys_of_audio(self, layer: str, encoded: Tensor) -> tuple[Tensor, ...]:
        """Key and value of the encoder's output, as a layer of the decoder sees it."""
        return self._split(f"{layer}/attention", self._linear(f"{layer}/attention/linear_1", encoded))

    def attend(
        self,
        attention: str,
        x: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        bias: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """`x` with what the query finds. `bias` is added to the logits: 0, or minus infinity."""
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal)
        outer = "linear_2" if f"{attention}/linear_2/weight" in self._weights else "linear_1"
        return x + self._linear(f"{attention}/{outer}", found.transpose(1, 2).flatten(2))

    def feed_forward(self, layer: str, x: Tensor) -> Tensor:
        """`x` with what the feed-forward network of a layer adds."""
        inner = F.gelu(self._linear(f"{layer}/ffn/linear_0", self._norm(f"{layer}/ffn", x)))
        return x + self._linear(f"{layer}/ffn/linear_1", inner)

    def logits(self, x: Tensor) -> Tensor:
        """The logits of the next tokens: (…, vocabulary)."""
        return self._linear("decoder/projection", self._norm("decoder", x))

    def _split(self, attention: str, x: Tensor) -> tuple[Tensor, ...]:
        """Values for query, key and value that are joined, by heads."""
        batch, length, joined = x.shape
        heads = self._heads[attention.partition("/")[0]]
        return x.reshape(batch, length, joined // self.width, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self._weights[f"{name}/weight"], self._weights.get(f"{name}/bias"))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        gamma, beta = self._weights[f"{name}/layer_norm/gamma"], self._weights[f"{name}/layer_norm/beta"]
        return F.layer_norm(x, gamma.shape, gamma, beta)
