"""Results as pages and pictures: values in, HTML or SVG out. Nothing is measured or trained here.

What a page shows is imported for its types only, so that writing one page loads no room that it does not show.
"""

__all__ = []
