"""Sphinx's settings: the site is the Markdown of the repository, as GitHub shows it (CONTRIBUTING.md: how to build it).

The pages lie where they are, and so do the links between them: the root of the sources is the repository. What the
site has beyond them is the navigation, made of the tables of docs/README.md: a page that no table lists is a warning.
"""

import os
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

project = "dlbridge"
version_header = (REPOSITORY / "bridge/include/dlbridge/version.h").read_text("utf-8")
html_title = "dlbridge " + re.search(r'define DLBRIDGE_VERSION "([^"]+)"', version_header)[1]

extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "benchmarks/**.md", "ndarray/*.md", "examples/**.md"]
exclude_patterns = [".*", "build"]  # not walked through, either
myst_heading_anchors = 4  # links lead to headings by GitHub's names for them
nitpicky = True
smartquotes = False  # quotation marks are part of code and of messages

html_theme = "furo"
html_extra_path = ["index.html"]
html_static_path = html_css_files = ["site.css"]
html_copy_source = html_use_index = html_show_sphinx = html_show_copyright = False
html_theme_options = {"navigation_with_keys": False}


def tables_of(page):
    """(title, pages) of the tables whose first column links to pages."""
    for table in re.findall(r"(?:^\|.*\n)+", (REPOSITORY / page).read_text("utf-8"), re.MULTILINE):
        links = re.findall(r"^\| \[[^\]]*\]\(([^)#]*\.md)\)", table, re.MULTILINE)
        yield table.split("|")[1].strip(), [os.path.normpath(Path(page).parent / link) for link in links]


def toctree(pages, *options):
    lines = ["```{toctree}", ":hidden:", *options, "", *(f"/{page}" for page in pages), "```"]
    return "\n" + "\n".join(lines) + "\n"


def add_navigation(app, page, source):
    if page == "README":
        for title, pages in tables_of("docs/README.md"):
            pages = ["docs/README.md" if one == "README.md" else one for one in pages]
            source[0] += toctree(pages, f":caption: {title}")
    elif page in ("docs/tutorial/README", "docs/api/README", "docs/upstream/README", "docs/cpp_reference"):
        source[0] += "".join(toctree(pages) for _, pages in tables_of(f"{page}.md"))
    elif page == "benchmarks/README":
        results = sorted((REPOSITORY / "benchmarks/results").glob("*.md"))
        source[0] += toctree([one.relative_to(REPOSITORY) for one in results])


def link_folders(app, page, source):
    """What GitHub shows of a folder is its README; the results are listed with that of the benchmarks."""

    def readme_of(match):
        folder = (REPOSITORY / page).parent / match[1]
        if "://" in match[1] or not folder.is_dir():
            return match[0]
        return f"]({match[1]}/README.md)" if (folder / "README.md").exists() else f"]({match[1]}/../README.md)"

    source[0] = re.sub(r"\]\(([^)\s#]+)\)", readme_of, source[0])


def setup(app):
    app.connect("source-read", link_folders)
    app.connect("source-read", add_navigation)
