"""Make Table 1 and the figures of Shockwave anew, all of them or those named.

\b
FIGURE: table1, figure2 ... figure5, figure7 ... figure14, figure16, figure17,
        bounds (makespans of 460 and 900 jobs against what no schedule can beat),
        draws (20 of the generator, 120 jobs each: the rule that Shockwave must beat, and what forecasts are worth)
JOBCAST_DATA names the folder of traces.

\b
Example:
  JOBCAST_DATA=data/raw python -m papers.shockwave figure7 --out figures
"""

from papers.driver import Paper, command_of

ITEMS = (
    "table1", "figure2", "figure3", "figure4", "figure5", "figure7", "figure8", "figure9", "figure10", "figure11",
    "figure12", "figure13", "figure14", "figure16", "figure17", "bounds", "draws",
)  # fmt: skip
WITHIN = {"figure14": "figure3", "figure17": "figure16", "figure9": "large_clusters", "bounds": "large_clusters"}
PAPER = Paper("Shockwave", "shockwave", ITEMS, "shockwave/, philly/, curves/", kept=True, within=WITHIN)
main = command_of(PAPER, __doc__, word="FIGURE")

if __name__ == "__main__":
    main()
