"""How loud each channel of a recording is in its mix, second by second, from the samples alone.

Almost always that is the mean of all channels. It would lose sound that one channel has upside down, and make
sound quiet that only one of many channels has.
"""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Weights = npt.NDArray[np.float64]  # of the channels; they add up to 1, so that nothing clips

_SILENCE = 1e-8  # energy of -80 dB, below which a second says nothing
_UNHEARD = 1e-4  # of the energy of the bass: others that are quieter, and the file may be wrong
_PARTS = 16  # of a second, to find when a channel is loudest
_QUARTER = 4  # parts: in so long, sound that is cancelled is missed
# Energy of the sum of all channels, to that of all channels: 0 if they cancel each other, 1 if they have
# nothing in common, their number if they are the same. The second value is for a mix that differs already.
_CANCELLED = (0.2, 0.5)
_SURELY_USUAL = 0.3  # the same, of some milliseconds
# How much louder the loudest channel of many is than the mean of all, in energy.
_ALONE = (2.5, 2.0)
_AGAINST = -0.5  # a correlation with the loudest channel: mixed with that, the channel would weaken it
_LEAD = 2.0  # a channel that is the loudest so far stays so until another has more energy by this factor
_AMBISONIC_RATIO = 1.4  # of the energy of W to that of Y, Z and X, at most, or its inverse: 1.5 dB
_AMBISONIC_PARTS = (0.75, 0.5)  # of the loud ones, that must have it


class Balance:
    """The weights for the channels of one recording."""

    def __init__(self, channels: int, bass: Collection[int] = ()) -> None:
        """`bass`: the channels that have only effects, if the file is right."""
        self.equal: Weights = np.full(channels, 1 / channels)
        self._main = np.array([channel not in bass for channel in range(channels)])
        self._all = np.ones(channels, bool)
        self._leader = 0
        self._is_ambisonic = False
        self.weights = self.equal  # the same object while the mix is the mean

    def weigh(self, samples: Floats) -> None:
        """Choose the weights for the next second: of its samples, some that are spread evenly over it.

        Shape (channels, n), full scale 1.
        """
        parts = min(_PARTS, samples.shape[1])
        with np.errstate(all="ignore"):  # a damaged file may have values that are not finite
            pieces = samples[:, : samples.shape[1] // parts * parts].reshape(len(samples), parts, -1)
            energies = np.einsum("cpn,cpn->cp", pieces, pieces) / pieces.shape[2]
            loudest = energies.max()
        if not _SILENCE < loudest < np.inf:
            return
        main = self._main if energies[self._main].max(initial=0) > _UNHEARD * loudest else self._all
        mix = pieces[main].sum(0)
        sums = np.einsum("pn,pn->p", mix, mix) / pieces.shape[2]
        differs = int(self.weights is not self.equal)
        self._is_ambisonic = (
            len(samples) == 4 and bool(main.all()) and self._fits_ambisonics(samples, energies)
        )
        if self._is_ambisonic:
            self.weights = np.array([1.0, 0, 0, 0])
        elif _cancelled(sums, energies[main].sum(0)) < _CANCELLED[differs] or (
            main.sum() > 2 and _loudest(energies[main]) > _ALONE[differs]
        ):
            self.weights = self._of_the_loudest(samples, energies.max(1) * main)
        else:
            self.weights = self.equal

    def _of_the_loudest(self, samples: Floats, peaks: Floats) -> Weights:
        """Each channel by its energy, without those that would weaken the loudest one."""
        lead = np.ones(len(peaks))
        lead[self._leader] = _LEAD
        self._leader = leader = int(np.argmax(peaks * lead))
        energies = np.einsum("cn,cn->c", samples, samples)
        against = samples @ samples[leader] < _AGAINST * np.sqrt(energies * energies[leader])
        weights: Weights = np.where(against, 0, peaks).astype(np.float64)
        weights /= weights.sum()
        return weights

    def _fits_ambisonics(self, samples: Floats, energies: Floats) -> bool:
        """Whether four channels are those of AmbiX: W with all sound; Y, Z, X with parts of it, by direction.

        Of sound from one direction, W has the energy of the others together (SN3D: the squares of the
        direction's coordinates add up to 1), and of diffuse sound as well, at any time.
        """
        whole, others = energies[0], energies[1:].sum(0)
        is_loud = whole > whole.max() / 100
        ratio = whole[is_loud] / np.maximum(others[is_loud], _SILENCE / 100)
        fitting = (ratio < _AMBISONIC_RATIO) & (ratio > 1 / _AMBISONIC_RATIO)
        if fitting.mean() < _AMBISONIC_PARTS[self._is_ambisonic]:
            return False
        energy = max(whole.mean() * samples.shape[1], 1e-30)
        common = ((samples[1:] @ samples[0] / energy) ** 2).sum()
        # Two channels of a quadraphonic recording may be as loud as each other, and the others silent.
        is_one_sided = energies[1:].mean(1).max() > 0.8 * whole.mean()
        return bool(common > (0.9 if is_one_sided else 0.02 if self._is_ambisonic else 0.2))


def is_usual(left: Floats, right: Floats) -> bool:
    """Whether two channels do not cancel each other where they have these samples: found fast."""
    product = left @ right
    return bool(product >= 0 or 2 * product > (_SURELY_USUAL - 1) * (left @ left + right @ right))


def _cancelled(sums: Floats, energies: Floats) -> float:
    """How much of the sound the sum of all channels has, in the quarter of a second in which it has least.

    Both have a value for each part. Quarters that are much quieter than the second count as if all were well.
    """
    starts = np.arange(0, len(sums), _QUARTER)
    found, there = np.add.reduceat(sums, starts), np.add.reduceat(energies, starts)
    is_loud = there > there.mean() / 8
    return float((found[is_loud] / there[is_loud]).min())


def _loudest(energies: Floats) -> float:
    """How much louder the loudest channel is than the mean of all, each where it is loudest: in energy."""
    peaks = energies.max(1)
    return float(peaks.max() / peaks.mean())
