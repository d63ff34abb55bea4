"""The look of plots."""

from jobcast.pipelines.report.look import PALETTE, styles


def test_styles_stay_apart():
    looks = styles([f"policy {i}" for i in range(20)])
    assert len(set(looks.values())) == 20
    assert looks["policy 0"].color == looks[f"policy {len(PALETTE)}"].color
