"""The stages of the main job, a file each; plan.py lists them."""
