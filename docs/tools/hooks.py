"""Pages that MkDocs makes: reference, circuits, the index of messages, and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

from docs.tools.circuits import cell, circuit_pages, own
from docs.tools.messages import ErrorPage, Message, all_messages, error_pages
from docs.tools.notebook_pages import notebook_page
from docs.tools.notebooks import NOTEBOOKS
from docs.tools.reference import PACKAGES, PublicName, public_names

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the pages about messages, by topic, and those of circuits into the navigation."""
    topics = [
        {topic: [{page.title: f"errors/{page.path.name}"} for page in pages]}
        for topic, pages in by_topic()
    ]
    errors = ["errors/index.md", *topics, {"All messages": "errors/all.md"}]
    circuits = ["circuits/index.md", *({name: f"circuits/{name}.md"} for name in own())]
    made = {"Errors": errors, "Circuits": circuits}
    config.nav = [
        {title: made.get(title, pages)}
        for entry in config.nav or []
        for title, pages in entry.items()
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    pages = {
        "reference/index.md": reference_index(),
        **{f"reference/{slug(package)}.md": reference_page(package) for package in PACKAGES},
        **circuit_pages(),
        "errors/index.md": errors_index(),
        "errors/all.md": all_errors(),
        **{f"notebooks/{path.stem}.html": notebook_page(path) for path in NOTEBOOKS},
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Shows the messages of a page about messages below its title, where a search finds them."""
    messages = page.meta.get("messages", ())
    title, _, rest = markdown.partition("\n\n")
    quoted = "\n>\n".join(f"> {cell(text)}" for text in messages)
    wrapped = rest.replace("```text", "``` { .text .refusal }")
    return f"{title}\n\n{quoted}\n\n{wrapped}" if messages else markdown


def slug(package: str) -> str:
    """The file of a package's page."""
    return package.removeprefix("mechnum.").replace(".", "-")


def reference_index() -> str:
    """The names at the top, and the packages."""
    lines = [
        "# Reference",
        "",
        "Everything is imported as `import mechnum as mn`. Names are loaded when they are first "
        "used, so that the import takes a fraction of a second.",
        "",
        "| at the top | defined in |",
        "|---|---|",
    ]
    offered = {name.home: name.name for package in PACKAGES for name in public_names(package)}
    for name in public_names("mechnum"):
        target = offered.get(name.home, name.home)
        package = target.rpartition(".")[0]
        known = package if package in PACKAGES else f"mechnum.{package}"
        lines.append(f"| [`mn.{name.short}`][{target}] | `{known}` |")
    lines += ["", "| package | what is in it |", "|---|---|"]
    for package, title in PACKAGES.items():
        names = ", ".join(f"`{name.short}`" for name in public_names(package))
        lines.append(f"| [{title}]({slug(package)}.md) `{package}` | {names} |")
    return "\n".join([*lines, "", *names_of_mechnum_alone()])


def names_of_mechnum_alone() -> Iterator[str]:
    """The instruments and the circuits that are names of no package."""
    yield from ["## In `mechnum` alone", ""]
    for name in public_names("mechnum"):
        if name.home.startswith("circuits."):
            yield from entry(name)


def reference_page(package: str) -> str:
    """All public names of a package, with signatures and docstrings."""
    at_the_top = {name.home: name.name for name in public_names("mechnum")}
    lines = [f"# {PACKAGES[package]}", "", f"`{package}`", ""]
    for name in public_names(package):
        lines += entry(name, at_the_top.get(name.home))
    return "\n".join(lines)


def entry(name: PublicName, at_the_top: str | None = None) -> Iterator[str]:
    """One name, which links find by each path that users write and the one of its definition."""
    for path in {name.name, at_the_top} - {name.home, None}:
        yield f"[](){{#{path}}}"
    yield from [
        "",
        f"::: {name.home}",
        "    options:",
        f"      heading: {name.name}",
        f"      toc_label: {name.short}",
        "",
    ]


def errors_index() -> str:
    """The pages about messages, by topic."""
    lines = [
        "# Error messages",
        "",
        "mechnum refuses early, in one line: *what is wrong: what to do*. In Python this is a "
        "`MechnumError`; values that a scikit-learn estimator refuses are an `InvalidInput`, which "
        "is a `ValueError` too. A command prints the line and ends with exit code 2.",
        "",
        "These pages explain the messages that most people meet. [All messages](all.md) are "
        "listed too.",
        "",
    ]
    for topic, pages in by_topic():
        lines += [f"## {topic}", ""]
        lines += [f"- [{page.title}]({page.path.name})" for page in pages]
        lines.append("")
    return "\n".join(lines)


def by_topic() -> list[tuple[str, list[ErrorPage]]]:
    """The pages about messages, each topic's together."""
    pages = sorted(error_pages(), key=lambda page: page.topic)
    return [(topic, list(group)) for topic, group in groupby(pages, key=lambda page: page.topic)]


def all_errors() -> str:
    """Every message of the sources, by package."""
    messages = all_messages()
    lines = [
        "# All messages",
        "",
        f"The {len(messages)} refusals in the sources; … stands for what is filled in.",
        "",
    ]
    pages = {text: page for page in error_pages() for text in page.messages}
    for package, group in groupby(messages, key=_package):
        lines += [f"## {package}", "", "| what is wrong | what to do | |", "|---|---|---|"]
        lines += [_row(message, pages.get(message.text)) for message in group]
        lines.append("")
    return "\n".join(lines)


def _package(message: Message) -> str:
    parts = message.module.split(".")
    return ".".join(parts[:2])


def _row(message: Message, page: ErrorPage | None) -> str:
    link = f"[explained]({page.path.name})" if page else ""
    return f"| {cell(message.wrong)} | {cell(message.advice)} | {link} |"
