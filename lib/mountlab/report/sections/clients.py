"""The share of each client in the workloads that several drove together, and which of them lagged behind."""

from __future__ import annotations

from statistics import fmean

from mountlab import plots
from mountlab.analysis.run_view import RunView
from mountlab.checks.clients import STRAGGLES, Share, shares
from mountlab.core import names, numbers
from mountlab.core.groups import by_key
from mountlab.core.units import scale_for
from mountlab.plots import Plot
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import names_of


def client_plots(run: RunView) -> list[Plot]:
    """Return one plot of all clients relative to the others; none where there are no clients."""
    points = []
    for share in shares(run.sweep, run.measurements):
        ratio, low, high = share.bounds
        points.append(
            plots.ClientPoint(
                filesystem=share.cell.filesystem.name,
                group=_group(share),
                client=share.client,
                ratio=ratio,
                low=low,
                high=high,
                trials=share.ratios,
                straggles=share.straggles,
            )
        )
    return [plots.plot_clients(points, limit=STRAGGLES, filesystems=names_of(run))] if points else []


@frames.attach(frames.clients)
def clients(run: RunView) -> Html:
    """Return the plot, and a table for each cell and metric."""
    drawn = client_plots(run)
    if not drawn:
        return html.nothing("No workload was driven by several clients.")
    groups = by_key((_group(share), share) for share in shares(run.sweep, run.measurements))
    tables = []
    for heading, members in groups.items():
        means = [fmean(share.rates) for share in members]
        scale = scale_for("B/s", max(means))
        rows = []
        for share, mean in zip(members, means, strict=True):
            throughput = numbers.mean_figures(mean, mean, mean, factor=scale.factor).value
            ratio, part = numbers.ratio_figures(*share.bounds), numbers.percent(mean / sum(means))
            straggles = "straggles" if share.straggles else ""
            rows.append([share.client, throughput, part, str(len(share.rates)), ratio.value, ratio.interval, straggles])
        figures = numeric(f"Mean, {scale.unit}", "Share of all", "n", "To the median of the others")
        head: Head = ["Client", *figures, Column("Interval", "interval"), ""]
        tables.append(html.table(head, [Rows(rows)], caption=heading))
    return html.joined(*map(html.plot, drawn), *tables)


def _group(share: Share) -> str:
    return f"{share.cell.id}: {names.metric_noun(share.metric)}"
