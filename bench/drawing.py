"""SVG charts for the README, readable on light and dark pages."""

from collections.abc import Mapping
from html import escape

WIDTH, LEFT, BAR, GAP, TOP = 860, 110, 34, 22, 44
LEGEND_COLUMNS = 4
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
    legend_top = TOP + len(bars) * (BAR + GAP) + 14
    height = legend_top + -(-len(names) // LEGEND_COLUMNS) * 22 + 6
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        "<style>text { fill: #222 } @media (prefers-color-scheme: dark) { text { fill: #ddd } }</style>",
        f'<text x="0" y="20" font-size="15">{escape(title)}</text>',
    ]
    for row, (label, parts) in enumerate(bars.items()):
        top = TOP + row * (BAR + GAP)
        lines.append(f'<text x="0" y="{top + BAR / 2 + 5:.0f}">{escape(label)}</text>')
        left = float(LEFT)
        for name, value in parts.items():
            lines.append(
                f'<rect x="{left:.1f}" y="{top}" width="{value * scale:.1f}" height="{BAR}" '
                f'fill="{colours[name]}"><title>{escape(name)}: {value:.2f} {unit}</title></rect>'
            )
            left += value * scale
        lines.append(
            f'<text x="{left + 8:.1f}" y="{top + BAR / 2 + 5:.0f}">{sum(parts.values()):.2f} {unit}</text>'
        )
    for place, name in enumerate(names):
        x = place % LEGEND_COLUMNS * (WIDTH // LEGEND_COLUMNS)
        y = legend_top + place // LEGEND_COLUMNS * 22
        lines.append(f'<rect x="{x}" y="{y}" width="13" height="13" fill="{colours[name]}"/>')
        values = " / ".join(f"{parts[name]:.2f}" for parts in bars.values() if name in parts)
        lines.append(f'<text x="{x + 19}" y="{y + 11}">{escape(name)} {values}</text>')
    return "\n".join([*lines, "</svg>", ""])
