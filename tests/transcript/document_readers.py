"""Documents as other programs read them: the text of each paragraph."""

from io import BytesIO

from docx import Document
from markdown_it import MarkdownIt


def read_docx(file: bytes) -> list[str]:
    return [paragraph.text for paragraph in Document(BytesIO(file)).paragraphs]


def read_md(file: bytes) -> list[str]:
    """The text of each block: of the title, which may come first, and of paragraphs."""
    tokens = MarkdownIt("commonmark").parse(file.decode())
    blocks = [token.type for token in tokens if token.type != "inline"]
    if blocks and blocks[0] == "heading_open":
        blocks = blocks[2:]
    assert set(blocks) <= {"paragraph_open", "paragraph_close"}
    inlines = [token.children or [] for token in tokens if token.type == "inline"]
    kinds = {child.type for children in inlines for child in children}
    assert kinds <= {"text", "strong_open", "strong_close"}
    return ["".join(child.content for child in children) for children in inlines]


READERS = {"docx": read_docx, "md": read_md, "txt": lambda file: file.decode().split("\n")[:-1]}
