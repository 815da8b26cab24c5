"""A mechanism or a recording in a web page, in three dimensions: the extra `viewer`.

`lw.view` serves a page on this machine, with sliders and a time bar; `lw.viewer.export_html` writes
one file that needs no server; `export_video` and `picture` draw films and pictures without viser
(extra `video`). viser is imported only when a page is requested.
"""

from linkwise.front_door import open_front_door
from linkwise.viewer.export import embedded, export_html, html_page
from linkwise.viewer.launch import view
from linkwise.viewer.scene import Part, Scene, scene_of
from linkwise.viewer.server import Viewer
from linkwise.viewer.video import export_video, picture

__all__ = [
    "Part",
    "Scene",
    "Viewer",
    "embedded",
    "export_html",
    "export_video",
    "html_page",
    "picture",
    "scene_of",
    "view",
]

open_front_door(globals(), __all__)
