"""How loud each channel of a recording is in its mix, second by second, from its samples only.

Almost always, the mix is the mean of all channels. That loses what one channel has upside down, and makes
quiet what only one of many channels has.
"""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]

_SILENCE = 1e-8  # energy of -80 dB, below which a second says nothing
_PARTS = 16  # of a second, to find when a channel is loudest
_INAUDIBLE = 1e-4  # of the energy of the bass: if all others are quieter, the file is wrong about its bass
# Energy of the sum of all channels, to that of all channels: 0 if they cancel each other, 1 if they have
# nothing in common, their number if they are the same. The second value is for a mix that differs already.
_CANCELLED = (0.2, 0.5)
# The part that the loudest of many channels has in the energy of all, times the root of their number.
_DOMINANT = (1.1, 0.9)
_AGAINST = -0.5  # a correlation with the loudest channel: mixed with that, the channel would weaken it
_LEAD = (1.5, 4.0)  # how much more energy another must have, to be louder than the first; than the last one
_AMBISONIC_RATIO = 1.6  # of the energy of W and that of Y, Z and X, one way or the other, at most: 2 dB
_AMBISONIC_PARTS = (0.7, 0.4)  # of those that are loud, that must have this ratio
# Of the energy of W, that the others must have in common with it: usually; where one other is as loud as W.
_IN_COMMON = ((0.2, 0.02), (0.9, 0.4))


class Balance:
    """The weights for the channels of one recording. They add up to 1, so that nothing clips."""

    def __init__(self, channels: int, bass: Collection[int] = ()) -> None:
        """`bass`: the channels for effects, as the file says."""
        self.mean: Floats = np.full(channels, 1 / channels)
        self.weights = self.mean  # the same object while the mix is the mean
        self._main = np.array([channel not in bass for channel in range(channels)])
        self._leader = 0
        self._is_ambisonic = False

    def weigh(self, samples: Floats) -> None:
        """Choose the weights for the next second by samples that are spread evenly over it.

        Shape (channels, n), full scale 1.
        """
        if samples.shape[1] < _PARTS:
            return
        parts = samples[:, : samples.shape[1] // _PARTS * _PARTS].reshape(len(samples), _PARTS, -1)
        is_mean = self.weights is self.mean
        if is_mean and len(parts) == 2 and (parts[0] * parts[1]).reshape(4, -1).sum(1).min() >= 0:
            return  # found fast: nothing cancels, as usual
        energies = np.einsum("cpn,cpn->cp", parts, parts) / parts.shape[2]
        if not _SILENCE < energies.max() < np.inf:  # or not finite, in a damaged file
            return
        is_main = energies[self._main].max() > _INAUDIBLE * energies.max()
        audible = self._main if is_main else np.ones_like(self._main)
        are_many = bool(audible.sum() > 2)
        # Of many channels that have little in common, some cancel each other for a moment.
        times = 1 if are_many else 4
        mixed = parts[audible].sum(0).reshape(times, -1)
        found = np.einsum("tn,tn->t", mixed, mixed) / parts.shape[2]
        there = energies[audible].sum(0).reshape(times, -1).sum(1)
        is_cancelled = (found < _CANCELLED[not is_mean] * there) & (there > there.mean() / 8)
        peaks = energies.max(1) * audible
        dominance = peaks.max() / peaks.sum() * np.sqrt(audible.sum())
        is_full = len(parts) == 4 and bool(audible.all())
        self._is_ambisonic = is_full and self._fits_ambisonics(samples, energies)
        if self._is_ambisonic:
            self.weights = np.array([1.0, 0, 0, 0])
        elif is_cancelled.any() or (are_many and dominance > _DOMINANT[not is_mean]):
            self.weights = self._by_energy(samples, peaks, are_many)
        else:
            self.weights, self._leader = self.mean, 0

    def _by_energy(self, samples: Floats, peaks: Floats, are_many: bool) -> Floats:
        """Of many channels, each by its energy, without those that would weaken the loudest; of two, that."""
        lead = np.ones_like(peaks)
        lead[self._leader] = _LEAD[self.weights is not self.mean]
        self._leader = leader = int(np.argmax(peaks * lead))
        if not are_many:  # they may cancel each other in a part of the second only
            return np.asarray(np.eye(len(peaks))[leader])
        energies = (samples**2).sum(1)
        against = samples @ samples[leader] < _AGAINST * np.sqrt(energies * energies[leader])
        weights = np.where(against, 0, peaks)
        return np.asarray(weights / weights.sum())

    def _fits_ambisonics(self, samples: Floats, energies: Floats) -> bool:
        """Whether four channels are those of AmbiX: W with all sound; Y, Z, X with parts of it, by direction.

        Of sound from one direction, W has the energy of the others together (SN3D: the squares of the
        direction's coordinates add up to 1), and of diffuse sound as well, at any time.
        """
        whole, others = energies[0], energies[1:].sum(0)
        is_loud = whole > np.maximum(whole.max() / 100, _SILENCE / 100)
        ratio = np.maximum(others, _SILENCE / 1e4)[is_loud] / whole[is_loud]
        fitting = np.maximum(ratio, 1 / ratio) < _AMBISONIC_RATIO
        if not fitting.size or fitting.mean() < _AMBISONIC_PARTS[self._is_ambisonic]:
            return False
        common = ((samples[1:] @ samples[0] / (samples[0] @ samples[0])) ** 2).sum()
        # Two channels of a quadraphonic recording may be as loud as each other, and the others silent.
        is_one_sided = bool(energies[1:].mean(1).max() > 0.9 * whole.mean())
        return bool(common > _IN_COMMON[is_one_sided][self._is_ambisonic])
