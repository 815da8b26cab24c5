"""A mechanism or a recording in a web page, in three dimensions: the extra `viewer`.

`lw.view` serves a page on this machine, with sliders and a time bar; `lw.viewer.export_html` writes
one file that needs no server. Nothing of viser is imported before one of them is called.
"""

from linkwise.front_door import open_front_door
from linkwise.viewer.export import export_html, html_page
from linkwise.viewer.launch import view
from linkwise.viewer.notebook import embedded
from linkwise.viewer.scene import Part, Scene, scene_of
from linkwise.viewer.server import Viewer

__all__ = ["Part", "Scene", "Viewer", "embedded", "export_html", "html_page", "scene_of", "view"]

open_front_door(globals(), __all__)
