"""Programs about attention and networks that claims may name, their counting, demonstrations and the catalogue.

The one bridge between the methods and `likewise.claims`, which imports nothing of this: it is found through the
entry-point group `likewise.programs`. Nothing here imports torch before a program runs.
"""
