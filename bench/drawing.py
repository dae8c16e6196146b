"""SVG charts for the README, readable on light and dark pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

WIDTH, LEFT, BAR, GAP, TOP = 860, 110, 34, 22, 44
LEGEND_COLUMNS = 4
# Of timelines.
LANE_GAP, MOST_TICKS = 8, 8
TICK_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
# A palette for all kinds of colour vision. The legend lists all names in the order of the bars.
COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
    "#994455", "#997700", "#6699cc", "#ee99aa", "#999999",
)  # fmt: skip


def stacked_bars(title: str, bars: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """An SVG chart with one stacked bar for each of `bars`, and one legend for all parts."""
    longest = max(sum(parts.values()) for parts in bars.values())
    scale = (WIDTH - LEFT - 70) / longest
    names = list(dict.fromkeys(name for parts in bars.values() for name in parts))
    colours = dict(zip(names, COLOURS, strict=False))
    lines = []
    for row, (label, parts) in enumerate(bars.items()):
        top = TOP + row * (BAR + GAP)
        lines.append(_text(0, top + BAR / 2 + 5, label))
        left = float(LEFT)
        for name, value in parts.items():
            lines.append(
                f'<rect x="{left:.1f}" y="{top}" width="{value * scale:.1f}" height="{BAR}" '
                f'fill="{colours[name]}"><title>{escape(name)}: {value:.2f} {unit}</title></rect>'
            )
            left += value * scale
        lines.append(_text(left + 8, top + BAR / 2 + 5, f"{sum(parts.values()):.2f} {unit}"))
    values = {
        name: " / ".join(f"{parts[name]:.2f}" for parts in bars.values() if name in parts) for name in names
    }
    labels = {f"{name} {values[name]}": colours[name] for name in names}
    return _chart(title, lines, TOP + len(bars) * (BAR + GAP) + 14, labels)


@dataclass(frozen=True)
class Lane:
    """A row of a timeline: bars with a name, a start and an end."""

    name: str
    bars: Sequence[tuple[str, float, float]]
    stacked: bool = False  # bars overlap: their number at each moment is the height, the name has the most


def timeline(title: str, lanes: Sequence[Lane], unit: str) -> str:
    """An SVG chart of what happened when, with one legend for the names of all bars."""
    last = max(end for lane in lanes for _, _, end in lane.bars)
    left = 160
    scale = (WIDTH - left - 20) / last
    names = list(dict.fromkeys(name for lane in lanes for name, _, _ in lane.bars))
    colours = dict(zip(names, COLOURS, strict=False))
    bottom = TOP + len(lanes) * (BAR + LANE_GAP)
    lines = []
    for row, lane in enumerate(lanes):
        top = TOP + row * (BAR + LANE_GAP)
        lines.append(
            _text(0, top + BAR / 2 + 5, f"{lane.name}: {_most(lane.bars)}" if lane.stacked else lane.name)
        )
        for name, start, end, share in _steps(lane.bars) if lane.stacked else _whole(lane.bars):
            lines.append(
                f'<rect x="{left + start * scale:.1f}" y="{top + BAR * (1 - share):.1f}" '
                f'width="{max(0.5, (end - start) * scale):.1f}" height="{BAR * share:.1f}" '
                f'fill="{colours[name]}"><title>{escape(name)}: {end - start:.3f} {unit}</title></rect>'
            )
    lines.append(f'<line stroke="#999" x1="{left}" y1="{bottom}" x2="{WIDTH - 20}" y2="{bottom}"/>')
    step = next(step for step in TICK_STEPS if last / step <= MOST_TICKS)
    for tick in range(int(last / step) + 1):
        text = f"{tick * step:g} {unit}"
        lines.append(_text(left + tick * step * scale, bottom + 17, text, ' text-anchor="middle"'))
    return _chart(title, lines, bottom + 34, colours)


def _chart(title: str, lines: Sequence[str], legend_top: int, colours: Mapping[str, str]) -> str:
    """The SVG file: a title, then these lines, then a legend of these names."""
    height = legend_top + -(-len(colours) // LEGEND_COLUMNS) * 22 + 6
    legend = []
    for place, (name, colour) in enumerate(colours.items()):
        x = place % LEGEND_COLUMNS * (WIDTH // LEGEND_COLUMNS)
        y = legend_top + place // LEGEND_COLUMNS * 22
        legend += [
            f'<rect x="{x}" y="{y}" width="13" height="13" fill="{colour}"/>',
            _text(x + 19, y + 11, name),
        ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            'font-family="system-ui, sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            "<style>text { fill: #222 } @media (prefers-color-scheme: dark) { text { fill: #ddd } }</style>",
            _text(0, 20, title, ' font-size="15"'),
            *lines,
            *legend,
            "</svg>",
            "",
        ]
    )


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{attributes}>{escape(text)}</text>'


def _whole(bars: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float, float]]:
    return [(*bar, 1.0) for bar in bars]


def _steps(bars: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float, float]]:
    """Between each two edges, the share of the largest number of bars that overlap."""
    edges = sorted({edge for _, start, end in bars for edge in (start, end)})
    counts = [(a, b, sum(start <= a and b <= end for _, start, end in bars)) for a, b in pairwise(edges)]
    most = max(count for _, _, count in counts)
    return [(bars[0][0], a, b, count / most) for a, b, count in counts if count]


def _most(bars: Sequence[tuple[str, float, float]]) -> int:
    """The largest number of bars that overlap."""
    return max(sum(start <= moment < end for _, start, end in bars) for _, moment, _ in bars)
