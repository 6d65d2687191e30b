#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what bench/order_quality prints:  build-release/bench/order_quality | bench/order_quality.py OUT.svg"""
import json
import math
import sys

rows = [row for row in map(json.loads, sys.stdin) if "order" in row]
truth = next(r for r in rows if r["order"] == "random")
quasi = [r for r in rows if r["order"] == "quasi_random"]
WIDTH, HEIGHT, LEFT, TOP = 760, 330, 60, 30
low, high = math.log2(quasi[0]["window_pages"]), math.log2(quasi[-1]["window_pages"])


def x(row):
    return LEFT + (WIDTH - LEFT - 30) * (math.log2(row["window_pages"]) - low) / (high - low)


def line(key, top, colour, offset):
    height = 110
    base = TOP + offset + height

    def y(value):
        return base - height * value / top

    points = " ".join(f"{x(r):.1f},{y(r[key]):.1f}" for r in quasi)
    out = [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
           f'<line x1="{LEFT}" x2="{WIDTH - 30}" y1="{y(truth[key]):.1f}" y2="{y(truth[key]):.1f}" stroke="#999" '
           'stroke-dasharray="4 3"/>',
           f'<line x1="{LEFT}" x2="{WIDTH - 30}" y1="{base}" y2="{base}" stroke="#ccc"/>']
    for r in quasi:
        shade = "#d62728" if r["window_pages"] == 4096 else colour
        text = f"{r[key]:.0f}" if top > 1 else f"{100 * r[key]:.2g}%"
        out.append(f'<circle cx="{x(r):.1f}" cy="{y(r[key]):.1f}" r="3.5" fill="{shade}"/>'
                   f'<text x="{x(r):.1f}" y="{y(r[key]) - 7:.1f}" text-anchor="middle" font-size="10">{text}</text>')
    return out


parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
         'font-size="12">',
         f'<text x="{LEFT}" y="18">distinct classes per batch of 256 (dashed: true random; red: the default window)</text>']
parts += line("distinct", 256, "#1f77b4", 0)
parts.append(f'<text x="{LEFT}" y="{TOP + 140}">next sample of a rank of 64 has the same class (next of the order: 0.1 % at any window)</text>')
parts += line("next_of_rank", max(r["next_of_rank"] for r in quasi) * 1.15, "#2ca02c", 150)
for r in quasi:
    parts.append(f'<text x="{x(r):.1f}" y="{HEIGHT - 22}" text-anchor="middle" font-size="10">{r["window_pages"]}</text>')
parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">window_pages</text></svg>')
open(sys.argv[1], "w").write("\n".join(parts) + "\n")
